// src/for_size_end.hpp: the end of what for_size.hpp begins.

#if defined(__OPTIMIZE__) && defined(__clang__)
#pragma clang attribute pop
#pragma clang diagnostic pop
#elif defined(__OPTIMIZE__) && defined(__GNUC__)
#pragma GCC pop_options
#endif
