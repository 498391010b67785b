// JSON without memory of its own: a text is checked once, and values are found in it whenever they are asked for.
#pragma once

#include <stdint.h>

namespace slimsvm::predict {

// A value: where its text begins and ends. Nothing has the text [null, null).
class Json {
   public:
    Json() = default;

    // The value of a whole text, or nothing where that is no JSON, or nested deeper than MOST_DEPTH.
    static Json parse(const char* text, const char* end);

    // The member of an object, the last of that name, or the entry of an array; nothing where there is none.
    Json operator[](const char* name) const;
    Json entry(int64_t place) const;
    int64_t size() const;  // entries of an array, 0 of anything else
    // The last entry of an array of objects whose member `name` is that text.
    Json entry_with(const char* name, const char* text) const;

    explicit operator bool() const { return begin_ != nullptr; }
    bool is_object() const { return begin_ && *begin_ == '{'; }
    bool is_array() const { return begin_ && *begin_ == '['; }
    bool is_text() const { return begin_ && *begin_ == '"'; }
    bool is_true() const { return begin_ && *begin_ == 't'; }
    bool is_text(const char* text) const;  // is that one; texts with escapes are none
    bool get(int64_t* number) const;       // of digits alone, within int64
    bool get(double* number) const;        // finite, right to a few of the last bits
    const char* begin() const { return begin_; }
    const char* end() const { return end_; }

   private:
    Json(const char* begin, const char* end) : begin_(begin), end_(end) {}
    // f(key, value) for the members of an object or the entries of an array (whose key is nothing) until one is true.
    template <class F>
    void each(const F& f) const;

    const char* begin_ = nullptr;
    const char* end_ = nullptr;
};

constexpr int MOST_DEPTH = 64;

}  // namespace slimsvm::predict
