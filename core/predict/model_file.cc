#include "predict/model_file.h"

#include "predict/message.h"
#include "predict/sha256.h"

namespace slimsvm::predict {

namespace {

constexpr char MAGIC[] = "slimsvm\n";
constexpr uint32_t LAST_VERSION = 2;  // which is 1 but for a scaling of rows
constexpr size_t BEFORE_HASHED = 44, PREFIX = 60;

template <class T>
T read_as(const uint8_t* place) {
    T value;
    memcpy(&value, place, sizeof value);
    return value;
}

// IEEE 754's half precision.
double half(uint16_t bits) {
    const double sign = bits >> 15 ? -1.0 : 1.0;
    const int exponent = bits >> 10 & 31;
    double value = exponent ? 1024 + (bits & 1023) : bits & 1023;
    if (exponent == 31) return bits & 1023 ? __builtin_nan("") : sign * __builtin_huge_val();
    for (int e = exponent ? exponent : 1; e < 25; ++e) value *= 0.5;
    for (int e = 25; e < exponent; ++e) value *= 2.0;
    return sign * value;
}

// Type and bytes of an item, of what NumPy writes; false where files hold no such type.
bool read_type(const Json& given, FileArray& array) {
    if (!given.is_text()) return false;
    const char* text = given.begin() + 1;
    const int64_t n = given.end() - given.begin() - 2;
    if (n < 3) return false;
    array.type = text[1];
    if (array.type == 'U') {
        int64_t letters = 0;
        for (int64_t i = 2; i < n; ++i) {
            if (text[i] < '0' || text[i] > '9' || letters > INT32_MAX / 10) return false;
            letters = 10 * letters + (text[i] - '0');
        }
        array.item_size = 4 * letters;
        return text[0] == '<' && letters > 0;
    }
    if (n != 3) return false;
    const char size = text[2];
    array.item_size = size - '0';
    if (text[0] == '|') return size == '1' && (array.type == 'b' || array.type == 'i' || array.type == 'u');
    const bool is_known = array.type == 'i' || array.type == 'u' || array.type == 'f';
    return text[0] == '<' && is_known && (size == '2' || size == '4' || size == '8');
}

}  // namespace

int64_t FileArray::whole(int64_t i) const {
    const uint8_t* place = bytes + i * item_size;
    const bool has_sign = type == 'i';
    switch (item_size) {
        case 1:
            return has_sign ? int64_t(read_as<int8_t>(place)) : int64_t(*place);
        case 2:
            return has_sign ? int64_t(read_as<int16_t>(place)) : int64_t(read_as<uint16_t>(place));
        case 4:
            return has_sign ? int64_t(read_as<int32_t>(place)) : int64_t(read_as<uint32_t>(place));
        default:
            return read_as<int64_t>(place);
    }
}

double FileArray::number(int64_t i) const {
    const uint8_t* place = bytes + i * item_size;
    if (type != 'f') return type == 'u' && item_size == 8 ? double(uint64_t(whole(i))) : double(whole(i));
    if (item_size == 2) return half(read_as<uint16_t>(place));
    return item_size == 4 ? double(read_as<float>(place)) : read_as<double>(place);
}

bool FileArray::copy_to(Array<double>& numbers) const {
    if (!numbers.make(n_items)) return error() << "there is no memory for the model", false;
    if (type == 'f' && item_size == 8 && n_items > 0)  // as nearly all are
        memcpy(numbers.data(), bytes, size_t(n_items) * sizeof(double));
    else
        for (int64_t i = 0; i < n_items; ++i) numbers[i] = number(i);
    return true;
}

bool ModelFile::read(const uint8_t* file, size_t size) {
    if (size < 8 || memcmp(file, MAGIC, 8) != 0) return error() << "this is not a slimsvm model file", false;
    if (size < PREFIX) return error() << "the model file is truncated", false;
    const uint32_t version = read_as<uint32_t>(file + 8);
    if (version < 1 || version > LAST_VERSION)
        return error() << "the model file has format version " << version << "; this library reads 1 and 2", false;
    if (read_as<uint64_t>(file + BEFORE_HASHED) != size || uint64_t(size) >> 63)
        return error() << "the model file is truncated or altered: it has " << int64_t(size) << " bytes", false;
    uint8_t digest[32];
    sha256(file + BEFORE_HASHED, size - BEFORE_HASHED, digest);
    if (memcmp(digest, file + 12, sizeof digest) != 0)
        return error() << "the model file was altered: its checksum does not match", false;
    const uint64_t n_header = read_as<uint64_t>(file + BEFORE_HASHED + 8);
    if (n_header > size - PREFIX) return error() << "the model file's header is longer than the file", false;
    if (!text.make(int64_t(n_header))) return error() << "there is no memory for the model file's header", false;
    if (n_header) memcpy(text.data(), file + PREFIX, size_t(n_header));
    const Json index = Json::parse(text.data(), text.data() + n_header);
    header = index["header"];
    entries = index["arrays"];
    bytes = file;
    n_bytes = int64_t(size);
    if (!header.is_object() || !entries.is_array())
        return error() << "the model file's header is not as it should be", false;
    return true;
}

bool ModelFile::find(const char* name, FileArray& array) const {
    array = FileArray();
    const Json entry = entries.entry_with("name", name), shape = entry["shape"];
    if (!entry) return true;
    int64_t offset = 0, n_needed = 0;
    array.n_axes = shape.size();
    bool is_right =
        read_type(entry["dtype"], array) && shape.is_array() && array.n_axes <= 2 && entry["offset"].get(&offset);
    array.n_items = 1;
    for (int64_t axis = 0; is_right && axis < array.n_axes; ++axis) {
        int64_t& n = array.shape[axis];
        is_right = shape.entry(axis).get(&n) && n >= 0 && !__builtin_mul_overflow(array.n_items, n, &array.n_items);
    }
    is_right = is_right && offset >= 0 && !__builtin_mul_overflow(array.n_items, array.item_size, &n_needed) &&
               !__builtin_add_overflow(n_needed, offset, &n_needed) && n_needed <= n_bytes;
    if (!is_right)
        return error() << "the array " << name << " is not within the file, or of a type that files do not hold", false;
    array.bytes = bytes + offset;
    return true;
}

}  // namespace slimsvm::predict
