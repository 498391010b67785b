// Memory of the runtime: arrays that free themselves, and may not come to be.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

namespace slimsvm::predict {

// Files that are compiled for one instruction set share no function with others: what they take from here is inlined.
#define SLIMSVM_ALWAYS_INLINE inline __attribute__((always_inline))

// n numbers, at first 0. Without exceptions and without a constructor that could fail: `make` says whether it worked.
template <class T>
class Array {
   public:
    SLIMSVM_ALWAYS_INLINE Array() {}
    SLIMSVM_ALWAYS_INLINE ~Array() { free(memory_); }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;

    SLIMSVM_ALWAYS_INLINE bool make(int64_t n) {
        free(memory_);
        data_ = nullptr;
        size_ = 0;
        int64_t bytes;
        if (n < 0 || __builtin_mul_overflow(n, int64_t(sizeof(T)), &bytes) || uint64_t(bytes) > SIZE_MAX - ALIGNED) {
            memory_ = nullptr;
            return false;
        }
        memory_ = calloc(size_t(bytes) + ALIGNED, 1);
        if (!memory_) return false;
        const uintptr_t place = reinterpret_cast<uintptr_t>(memory_);
        data_ = reinterpret_cast<T*>((place + ALIGNED - 1) / ALIGNED * ALIGNED);
        size_ = n;
        return true;
    }
    SLIMSVM_ALWAYS_INLINE void swap(Array& other) {
        Array copy;
        memcpy(static_cast<void*>(&copy), static_cast<void*>(this), sizeof copy);
        memcpy(static_cast<void*>(this), static_cast<void*>(&other), sizeof copy);
        memcpy(static_cast<void*>(&other), static_cast<void*>(&copy), sizeof copy);
        copy.memory_ = nullptr;
    }

    SLIMSVM_ALWAYS_INLINE T* data() { return data_; }
    SLIMSVM_ALWAYS_INLINE const T* data() const { return data_; }
    SLIMSVM_ALWAYS_INLINE int64_t size() const { return size_; }
    SLIMSVM_ALWAYS_INLINE T& operator[](int64_t i) { return data_[i]; }
    SLIMSVM_ALWAYS_INLINE const T& operator[](int64_t i) const { return data_[i]; }

   private:
    static constexpr size_t ALIGNED = 64;
    void* memory_ = nullptr;
    T* data_ = nullptr;
    int64_t size_ = 0;
};

}  // namespace slimsvm::predict
