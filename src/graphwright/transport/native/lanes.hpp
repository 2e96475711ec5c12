// Vectors of 32 bytes, aligned rows and threads: what every kernel here is made of.
// Written with the vector extension of GCC and Clang; another compiler refuses it, and the torch path is used.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

namespace graphwright {

template <class F> struct Lanes;
template <> struct Lanes<float> {
    typedef float Vector __attribute__((vector_size(32)));
    typedef int32_t Bits __attribute__((vector_size(32)));
    static constexpr int64_t count = 8;
};
template <> struct Lanes<double> {
    typedef double Vector __attribute__((vector_size(32)));
    typedef int64_t Bits __attribute__((vector_size(32)));
    static constexpr int64_t count = 4;
};
template <class F> using Vector = typename Lanes<F>::Vector;
template <class F> using Bits = typename Lanes<F>::Bits;

// Rows are padded to whole vectors.
template <class F> inline int64_t padded(int64_t n) {
    return (n + Lanes<F>::count - 1) / Lanes<F>::count * Lanes<F>::count;
}

template <class F> inline Vector<F> load(const F* from) { return *reinterpret_cast<const Vector<F>*>(from); }
template <class F> inline Vector<F> load_unaligned(const F* from) {
    Vector<F> value;
    std::memcpy(&value, from, sizeof value);
    return value;
}
// The first `width` lanes, the others 0 or left alone.
template <class F> inline Vector<F> load_some(const F* from, int64_t width) {
    if (width == Lanes<F>::count) return load_unaligned(from);
    Vector<F> value{};
    std::memcpy(&value, from, sizeof(F) * width);
    return value;
}
template <class F> inline void store_some(F* to, Vector<F> value, int64_t width) {
    std::memcpy(to, &value, width == Lanes<F>::count ? sizeof value : sizeof(F) * width);
}
template <class F> inline void store(F* to, Vector<F> value) { *reinterpret_cast<Vector<F>*>(to) = value; }
template <class F> inline Vector<F> all(F value) { return value - Vector<F>{}; }

template <class F> inline Vector<F> larger(Vector<F> a, Vector<F> b) { return a > b ? a : b; }

template <class F> inline F sum(Vector<F> value) {
    F total = 0;
    for (int64_t lane = 0; lane < Lanes<F>::count; ++lane) total += value[lane];
    return total;
}
// Four sums at once, by three rounds of adding halves.
typedef float Four __attribute__((vector_size(16)));
#if defined(__clang__) || __GNUC__ >= 12
#define GRAPHWRIGHT_PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define GRAPHWRIGHT_PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, decltype(a > a){i, j, k, l})
#endif
template <class Q> inline Q fold(Q a, Q b, Q c, Q d) {
    const Q first = GRAPHWRIGHT_PICK(a, b, 0, 4, 1, 5) + GRAPHWRIGHT_PICK(a, b, 2, 6, 3, 7);
    const Q second = GRAPHWRIGHT_PICK(c, d, 0, 4, 1, 5) + GRAPHWRIGHT_PICK(c, d, 2, 6, 3, 7);
    return GRAPHWRIGHT_PICK(first, second, 0, 1, 4, 5) + GRAPHWRIGHT_PICK(first, second, 2, 3, 6, 7);
}
inline Four halves(Vector<float> value) {
    Four half[2];
    std::memcpy(half, &value, sizeof value);
    return half[0] + half[1];
}
inline void sums(const Vector<float>* four, float* out) {
    const Four total = fold(halves(four[0]), halves(four[1]), halves(four[2]), halves(four[3]));
    std::memcpy(out, &total, sizeof total);
}
inline void sums(const Vector<double>* four, double* out) {
    const Vector<double> total = fold(four[0], four[1], four[2], four[3]);
    std::memcpy(out, &total, sizeof total);
}
// Whether any lane is set.
template <class F> inline bool any(Bits<F> lanes) {
    int64_t words[sizeof(Bits<F>) / sizeof(int64_t)], found = 0;
    std::memcpy(words, &lanes, sizeof words);
    for (const int64_t word : words) found |= word;
    return found != 0;
}
template <class F> inline F largest(Vector<F> value) {
    F most = value[0];
    for (int64_t lane = 1; lane < Lanes<F>::count; ++lane) most = std::max(most, value[lane]);
    return most;
}

// exp: 2^k e^r with |r| <= ln 2 / 2 and a polynomial in r (relative error 3e-9 before rounding); 0 below -87.
inline Vector<float> exponential(Vector<float> x) {
    const Bits<float> vanishes = x < -87.0f;
    x = vanishes ? all<float>(-87.0f) : x;
    x = x > 88.0f ? all<float>(88.0f) : x;
    const float rounder = 12582912.0f;  // 1.5 * 2^23: adding it leaves no room for a fraction
    const Vector<float> k = (x * 1.44269504088896341f + rounder) - rounder;
    const Vector<float> r = (x - k * 0.693359375f) + k * 2.12194440054690583e-4f;
    const Vector<float> q =
        4.999999345e-1f + r * (1.666652063e-1f + r * (4.166838805e-2f + r * (8.368716898e-3f + r * 1.381459837e-3f)));
    const Vector<float> mantissa = (q * r) * r + r + 1.0f;
    const Bits<float> exponent = (__builtin_convertvector(k, Bits<float>) + 127) << 23;
    Vector<float> scale;
    std::memcpy(&scale, &exponent, sizeof scale);
    return vanishes ? Vector<float>{} : mantissa * scale;
}
inline Vector<double> exponential(Vector<double> x) {
    for (int64_t lane = 0; lane < Lanes<double>::count; ++lane) x[lane] = std::exp(x[lane]);
    return x;
}

// log of a positive normal number: 2^k m with m around 1, log m = 2 artanh((m - 1) / (m + 1)).
inline Vector<float> logarithm(Vector<float> x) {
    Bits<float> bits;
    std::memcpy(&bits, &x, sizeof bits);
    const Bits<float> k = (bits - 0x3f3504f3) >> 23;  // so that m lies in [1 / sqrt 2, sqrt 2)
    const Bits<float> mantissa = bits - (k << 23);
    Vector<float> m;
    std::memcpy(&m, &mantissa, sizeof m);
    const Vector<float> t = (m - 1.0f) / (m + 1.0f);
    const Vector<float> s = t * t;
    const Vector<float> series = 2.0f + s * (2.0f / 3 + s * (2.0f / 5 + s * (2.0f / 7 + s * (2.0f / 9))));
    return __builtin_convertvector(k, Vector<float>) * 0.693147180559945f + t * series;
}
inline Vector<double> logarithm(Vector<double> x) {
    for (int64_t lane = 0; lane < Lanes<double>::count; ++lane) x[lane] = std::log(x[lane]);
    return x;
}

// Aligned scratch memory, handed out in whole vectors.
template <class F> class Scratch {
  public:
#ifdef __SANITIZE_ADDRESS__
    // Every array by itself, so that the sanitizer sees where each of them ends; and all of them within the size.
    explicit Scratch(int64_t size) : left_(size) {}
    F* take(int64_t size) {
        if ((left_ -= padded<F>(size)) < 0) __builtin_trap();
        arrays_.emplace_back(new (std::align_val_t(32)) F[padded<F>(size)]());
        return arrays_.back().get();
    }

  private:
    struct Free {
        void operator()(F* array) const { operator delete[](array, std::align_val_t(32)); }
    };
    std::vector<std::unique_ptr<F[], Free>> arrays_;
    int64_t left_;
#else
    explicit Scratch(int64_t size) : memory_(size + Lanes<F>::count * 2) {
        const auto address = reinterpret_cast<uintptr_t>(memory_.data());
        next_ = memory_.data() + ((32 - address % 32) % 32) / sizeof(F);
    }
    F* take(int64_t size) {
        F* here = next_;
        next_ += padded<F>(size);
        return here;
    }

  private:
    std::vector<F> memory_;
    F* next_;
#endif
};

// The first columns of rows of n numbers into padded rows, the rest filled up.
template <class F>
inline void pack(const F* from, int64_t rows, int64_t n, int64_t columns, F fill, F* to) {
    const int64_t stride = padded<F>(columns);
    for (int64_t i = 0; i < rows; ++i) {
        std::memcpy(to + i * stride, from + i * n, sizeof(F) * columns);
        std::fill(to + i * stride + columns, to + (i + 1) * stride, fill);
    }
}

// Numbers too small for a normal exponent count as zero: they are slow, and nothing here needs them.
class FlushSubnormals {
  public:
#ifdef __SSE2__
    FlushSubnormals() : before_(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(before_ | 0x8040u); }
    ~FlushSubnormals() { __builtin_ia32_ldmxcsr(before_); }

  private:
    unsigned before_;
#endif
};

// One sample at a time on each thread; `make` builds a thread's own worker with its scratch memory. The threads are
// OpenMP's, which torch uses too: threads of our own would wait for torch's, which go on spinning after their work.
// False where there is no memory: no exception may leave a thread.
template <class Make> bool for_each_sample(int64_t samples, int64_t threads, Make make) {
    std::atomic<int64_t> next{0};
    std::atomic<bool> enough{true};
#ifdef _OPENMP
#pragma omp parallel num_threads(static_cast<int>(threads)) if (threads > 1)
#endif
    {
        FlushSubnormals flush;
        try {
            auto worker = make();
            for (int64_t sample; (sample = next.fetch_add(1, std::memory_order_relaxed)) < samples;) worker(sample);
        } catch (const std::bad_alloc&) {
            enough = false;
        } catch (const std::length_error&) {
            enough = false;
        }
    }
    return enough;
}

}  // namespace graphwright
