// The sentence that says what went wrong, one for each thread.
#pragma once

#include <stdint.h>

namespace slimsvm::predict {

// The pieces of a sentence, one after another: error() << "row " << 3 << " is not finite". What does not fit is cut
// off.
class Message {
   public:
    Message& operator<<(const char* text);
    Message& operator<<(int64_t number);
};

// Begins a new sentence of this thread.
Message error();
const char* last_error();

}  // namespace slimsvm::predict
