#include "predict/json.h"

#include <string.h>

namespace slimsvm::predict {

namespace {

const char* skip_space(const char* at, const char* end) {
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')) ++at;
    return at;
}

bool is_digit(const char* at, const char* end) { return at < end && *at >= '0' && *at <= '9'; }

// The functions below return where a part that begins at `at` ends, and null where there is none.

const char* skip_digits(const char* at, const char* end) {
    if (!is_digit(at, end)) return nullptr;
    while (is_digit(at, end)) ++at;
    return at;
}

const char* skip_number(const char* at, const char* end) {
    if (at < end && *at == '-') ++at;
    if (is_digit(at, end) && *at == '0' && is_digit(at + 1, end)) return nullptr;
    at = skip_digits(at, end);
    if (at && at < end && *at == '.') at = skip_digits(at + 1, end);
    if (at && at < end && (*at == 'e' || *at == 'E')) {
        ++at;
        if (at < end && (*at == '+' || *at == '-')) ++at;
        at = skip_digits(at, end);
    }
    return at;
}

const char* skip_text(const char* at, const char* end) {
    for (++at; at < end && *at != '"'; ++at) {
        if (uint8_t(*at) < 32) return nullptr;
        if (*at != '\\') continue;
        if (++at == end || !*at || !strchr("\"\\/bfnrtu", *at)) return nullptr;
        if (*at != 'u') continue;
        for (int i = 0; i < 4; ++i)
            if (++at == end || !*at || !strchr("0123456789abcdefABCDEF", *at)) return nullptr;
    }
    return at < end ? at + 1 : nullptr;
}

const char* skip_word(const char* at, const char* end, const char* word) {
    for (; *word; ++word, ++at)
        if (at == end || *at != *word) return nullptr;
    return at;
}

const char* skip_value(const char* at, const char* end, int depth) {
    if (at == end) return nullptr;
    switch (*at) {
        case '"':
            return skip_text(at, end);
        case 't':
            return skip_word(at, end, "true");
        case 'f':
            return skip_word(at, end, "false");
        case 'n':
            return skip_word(at, end, "null");
        case '{':
        case '[':
            break;
        default:
            return skip_number(at, end);
    }
    if (depth == 0) return nullptr;
    const bool has_keys = *at == '{';
    const char closing = has_keys ? '}' : ']';
    at = skip_space(at + 1, end);
    if (at < end && *at == closing) return at + 1;
    for (;;) {
        if (has_keys) {
            if (at == end || *at != '"' || !(at = skip_text(at, end))) return nullptr;
            at = skip_space(at, end);
            if (at == end || *at++ != ':') return nullptr;
            at = skip_space(at, end);
        }
        if (!(at = skip_value(at, end, depth - 1))) return nullptr;
        at = skip_space(at, end);
        if (at == end || (*at != ',' && *at != closing)) return nullptr;
        if (*at++ == closing) return at;
        at = skip_space(at, end);
    }
}

}  // namespace

Json Json::parse(const char* text, const char* end) {
    const char* begin = skip_space(text, end);
    const char* last = skip_value(begin, end, MOST_DEPTH);
    return last && skip_space(last, end) == end ? Json(begin, last) : Json();
}

template <class F>
void Json::each(const F& f) const {
    if (!is_object() && !is_array()) return;
    const bool has_keys = is_object();
    const char* at = skip_space(begin_ + 1, end_);
    while (*at != '}' && *at != ']') {
        Json key;
        if (has_keys) {
            key = Json(at, skip_text(at, end_));
            at = skip_space(skip_space(key.end_, end_) + 1, end_);
        }
        const Json value(at, skip_value(at, end_, MOST_DEPTH));
        if (f(key, value)) return;
        at = skip_space(value.end_, end_);
        if (*at == ',') at = skip_space(at + 1, end_);
    }
}

Json Json::operator[](const char* name) const {
    Json found;
    if (!is_object()) return found;
    each([&](const Json& key, const Json& value) {
        if (key.is_text(name)) found = value;
        return false;
    });
    return found;
}

Json Json::entry(int64_t place) const {
    Json found;
    if (!is_array()) return found;
    each([&](const Json&, const Json& value) {
        if (place-- == 0) found = value;
        return bool(found);
    });
    return found;
}

Json Json::entry_with(const char* name, const char* text) const {
    Json found;
    if (!is_array()) return found;
    each([&](const Json&, const Json& value) {
        if (value[name].is_text(text)) found = value;
        return false;
    });
    return found;
}

int64_t Json::size() const {
    int64_t n = 0;
    if (is_array()) each([&](const Json&, const Json&) { return ++n < 0; });
    return n;
}

bool Json::is_text(const char* text) const {
    const size_t n = strlen(text);
    return is_text() && size_t(end_ - begin_) == n + 2 && memcmp(begin_ + 1, text, n) == 0;
}

bool Json::get(int64_t* number) const {
    const char* at = begin_;
    if (!at || skip_digits(*at == '-' ? at + 1 : at, end_) != end_) return false;
    const bool is_negative = *at == '-';
    int64_t value = 0;
    for (at += is_negative; at < end_; ++at) {
        const int64_t digit = *at - '0';
        if (__builtin_mul_overflow(value, int64_t(10), &value) || __builtin_sub_overflow(value, digit, &value))
            return false;  // below 0, where there is one number more
    }
    if (!is_negative && value == INT64_MIN) return false;
    *number = is_negative ? value : -value;
    return true;
}

bool Json::get(double* number) const {
    const char* at = begin_;
    if (!at || skip_number(at, end_) != end_) return false;
    const bool is_negative = *at == '-';
    at += is_negative;
    // 18 digits as a whole number; those that follow count as zeros.
    uint64_t digits = 0;
    int64_t exponent = 0, given = 0;
    bool after_point = false;
    for (; at < end_ && *at != 'e' && *at != 'E'; ++at) {
        if (*at == '.') {
            after_point = true;
            continue;
        }
        if (digits < 100000000000000000u)
            digits = 10 * digits + uint64_t(*at - '0');
        else
            ++exponent;
        exponent -= after_point;
    }
    if (at < end_) {
        const bool is_small = *++at == '-';
        if (*at == '+' || *at == '-') ++at;
        for (; at < end_; ++at)
            if (given < 100000) given = 10 * given + (*at - '0');
        exponent += is_small ? -given : given;
    }
    double value = double(digits);
    for (; exponent > 0 && value > 0.0 && value <= 1e308; --exponent) value *= 10.0;
    for (; exponent <= -22 && value > 0.0; exponent += 22) value /= 1e22;
    double power = 1.0;
    for (; exponent < 0; ++exponent) power *= 10.0;
    value /= power;
    if (!(value <= 1.7976931348623157e308)) return false;
    *number = is_negative ? -value : value;
    return true;
}

}  // namespace slimsvm::predict
