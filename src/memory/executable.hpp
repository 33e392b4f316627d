// src/memory/executable.hpp: whether addresses that came from elsewhere can be those of functions.
#pragma once

#include "../standard.hpp"

#if defined(__linux__)
#include <fcntl.h>
#include <unistd.h>
#endif

namespace tenon::detail {

#if defined(__linux__)

/// Reads the system's list of this process's memory, "from-to rwxp ..." a line, a character at a time.
class memory_map {
public:
    memory_map() noexcept : file_(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
    ~memory_map() {
        if (file_ >= 0) close(file_);
    }
    memory_map(const memory_map&) = delete;
    memory_map& operator=(const memory_map&) = delete;

    [[nodiscard]] bool is_open() const noexcept { return file_ >= 0; }

    struct range {
        std::uintptr_t from, to;
        bool executable;
    };
    /// False at the end.
    [[nodiscard]] bool next(range& out) noexcept {
        char end = 0;
        out.from = number(end);
        if (end != '-') return false;
        out.to = number(end);
        if (end != ' ') return false;
        (void)character();
        (void)character();
        out.executable = character() == 'x';
        int c = 0;
        do c = character();
        while (c >= 0 && c != '\n');
        return true;
    }

private:
    /// The next character, or -1 at the end.
    int character() noexcept {
        if (at_ == filled_) {
            const ssize_t got = read(file_, text_, sizeof text_);
            if (got <= 0) return -1;
            at_ = 0;
            filled_ = static_cast<std::size_t>(got);
        }
        return static_cast<unsigned char>(text_[at_++]);
    }
    /// A hexadecimal number; `end` is what stands behind it.
    std::uintptr_t number(char& end) noexcept {
        std::uintptr_t value = 0;
        for (;;) {
            const int c = character();
            if (c >= '0' && c <= '9')
                value = value * 16 + static_cast<std::uintptr_t>(c - '0');
            else if (c >= 'a' && c <= 'f')
                value = value * 16 + static_cast<std::uintptr_t>(c - 'a' + 10);
            else
                return (end = c < 0 ? '\0' : static_cast<char>(c)), value;
        }
    }

    int file_;
    std::size_t at_ = 0, filled_ = 0;
    char text_[1024];
};

#endif

/// Whether each address, where there is one, is in memory that can be executed. The system is asked, which
/// takes as long as reading a file of some hundred lines: for what is looked at once. Where it cannot answer,
/// the addresses are believed.
[[nodiscard]] inline bool are_executable(std::span<const void* const> addresses) noexcept {
#if defined(__linux__)
    memory_map map;
    if (!map.is_open()) return true;
    std::size_t wanted = 0, found = 0;
    for (const void* const address : addresses) wanted += address != nullptr ? 1 : 0;
    for (memory_map::range here{}; found < wanted && map.next(here);) {
        for (const void* const address : addresses) {
            const auto at = reinterpret_cast<std::uintptr_t>(address);
            found += address != nullptr && here.executable && at >= here.from && at < here.to ? 1 : 0;
        }
    }
    return found == wanted;
#else
    (void)addresses;
    return true;
#endif
}

}  // namespace tenon::detail
