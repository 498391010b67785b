#include "predict/message.h"

namespace slimsvm::predict {

namespace {

thread_local char sentence[256];
thread_local int n_written;

}  // namespace

Message& Message::operator<<(const char* text) {
    for (; *text && n_written + 1 < int(sizeof sentence); ++text) sentence[n_written++] = *text;
    sentence[n_written] = 0;
    return *this;
}

Message& Message::operator<<(int64_t number) {
    char digits[24];
    char* place = digits + sizeof digits;
    uint64_t rest = number < 0 ? 0 - uint64_t(number) : uint64_t(number);
    *--place = 0;
    do *--place = char('0' + rest % 10);
    while (rest /= 10);
    if (number < 0) *--place = '-';
    return *this << place;
}

Message error() {
    n_written = 0;
    return Message();
}

const char* last_error() { return sentence; }

}  // namespace slimsvm::predict
