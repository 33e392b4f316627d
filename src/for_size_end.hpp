// src/for_size_end.hpp: the end of what for_size.hpp begins.

#if defined(__OPTIMIZE__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
