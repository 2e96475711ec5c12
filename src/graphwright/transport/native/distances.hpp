// L1 distances of embeddings without an (n, m, d) intermediate, one sample at a time.
#pragma once

#include "lanes.hpp"

namespace graphwright {

template <class F> inline Vector<F> magnitude(Vector<F> x) { return larger<F>(x, -x); }

// Vectors (count, d), and one more that stands for all after them, if there is one.
template <class F> struct Nodes {
    const F* real;
    int64_t count, d;
    const F* padding;
    const F* operator[](int64_t j) const { return j < count ? real + j * d : padding; }
};

// distances: (n, stride), of which the first columns, of x (n, d) and nodes.
template <class F>
inline void l1_distances(const F* x, const Nodes<F>& nodes, int64_t n, int64_t columns, int64_t stride, F* distances) {
    const int64_t d = nodes.d, lanes = Lanes<F>::count, whole = d / lanes * lanes;
    for (int64_t i = 0; i < n; ++i) {
        const F* left = x + i * d;
        F* out = distances + i * stride;
        int64_t j = 0;
        for (; j + 3 < columns; j += 4) {
            const F* right[4] = {nodes[j], nodes[j + 1], nodes[j + 2], nodes[j + 3]};
            Vector<F> total[4] = {};
            for (int64_t k = 0; k < whole; k += lanes) {
                const Vector<F> here = load_unaligned(left + k);
                for (int64_t c = 0; c < 4; ++c) total[c] += magnitude<F>(here - load_unaligned(right[c] + k));
            }
            sums(total, out + j);
            for (int64_t c = 0; c < 4; ++c)
                for (int64_t k = whole; k < d; ++k) out[j + c] += std::abs(left[k] - right[c][k]);
        }
        for (; j < columns; ++j) {
            const F* right = nodes[j];
            Vector<F> total{};
            for (int64_t k = 0; k < whole; k += lanes)
                total += magnitude<F>(load_unaligned(left + k) - load_unaligned(right + k));
            F rest = 0;
            for (int64_t k = whole; k < d; ++k) rest += std::abs(left[k] - right[k]);
            out[j] = sum<F>(total) + rest;
        }
    }
}

// to_x_i = sum_j G_ij sign(x_i - y_j), to_y_j = -sum_i G_ij sign(x_i - y_j); the sign of 0 is 0. G: (n, stride).
// A few dimensions at a time, with that slice of the nodes and of their gradient side by side in the cache; four
// rows at a time, so that a node's gradient is fetched once for them.
template <class F> class L1Gradient {
  public:
    static int64_t scratch(int64_t n) { return 2 * n * Lanes<F>::count; }

    L1Gradient(int64_t n, Scratch<F>& memory)
        : slice_(memory.take(n * Lanes<F>::count)), to_slice_(memory.take(n * Lanes<F>::count)) {}

    void run(const F* x, const Nodes<F>& nodes, const F* weights, int64_t n, int64_t columns, int64_t stride, F* to_x,
             F* to_real, F* to_padding) {
        const int64_t d = nodes.d, lanes = Lanes<F>::count;
        for (int64_t k = 0; k < d; k += lanes) {
            const int64_t width = std::min(lanes, d - k);
            for (int64_t j = 0; j < columns; ++j) {
                store(slice_ + j * lanes, load_some(nodes[j] + k, width));
                store(to_slice_ + j * lanes, Vector<F>{});
            }
            int64_t i = 0;
            for (; i + 3 < n; i += 4) rows<4>(x + i * d + k, weights + i * stride, columns, stride, d, width, to_x + i * d + k);
            for (; i < n; ++i) rows<1>(x + i * d + k, weights + i * stride, columns, stride, d, width, to_x + i * d + k);
            for (int64_t j = 0; j < columns; ++j)
                store_some((j < nodes.count ? to_real + j * d : to_padding) + k, load(to_slice_ + j * lanes), width);
        }
    }

  private:
    template <int count>
    void rows(const F* x, const F* weights, int64_t columns, int64_t stride, int64_t d, int64_t width, F* to_x) {
        const int64_t lanes = Lanes<F>::count;
        Vector<F> here[count] = {}, total[count] = {};
        for (int row = 0; row < count; ++row) here[row] = load_some(x + row * d, width);
        for (int64_t j = 0; j < columns; ++j) {
            const Vector<F> there = load(slice_ + j * lanes), none{};
            Vector<F> together{};
            for (int row = 0; row < count; ++row) {
                const Vector<F> weight = all(weights[row * stride + j]);
                const Vector<F> part = (here[row] > there ? weight : none) - (here[row] < there ? weight : none);
                total[row] += part;
                together += part;
            }
            store(to_slice_ + j * lanes, load(to_slice_ + j * lanes) - together);
        }
        for (int row = 0; row < count; ++row) store_some(to_x + row * d, total[row], width);
    }

    F *slice_, *to_slice_;
};

}  // namespace graphwright
