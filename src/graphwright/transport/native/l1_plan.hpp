// The learned plan: L1 distances of embeddings, divided by their sum, and Sinkhorn's steps on them, one sample at a
// time, so that distances, kernel and gradients stay in the cache.
#pragma once

#include "distances.hpp"
#include "sinkhorn_backward.hpp"

namespace graphwright {

// x: (batch, n, d). y: (sum of counts, d), the nodes of sample i after starts[i] of others. padding: (d).
// further: (batch, n, n) costs beside the distances, alike in all columns beyond the nodes; or null.
template <class F> struct Embeddings {
    const F *x, *y;
    const int64_t *counts, *starts;
    const F *padding, *further;
    int64_t n, d;

    Nodes<F> nodes(int64_t sample) const { return {y + starts[sample] * d, counts[sample], d, padding}; }
    // One column for all nodes beyond the real ones.
    int64_t columns(int64_t sample) const { return std::min(counts[sample] + 1, n); }
};

// cost: (batch, n, n), of whose columns the first count. totals: (batch) what the costs sum to, least at least.
// mass: (batch) of the plan, which is finite only if the embeddings and their distances are.
template <class F>
bool l1_plan_forward(const Embeddings<F>& given, F epsilon, F least, int64_t batch, int64_t steps, int64_t threads,
                     F* cost, F* totals, F* plan, F* rows, F* columns, F* mass) {
    const int64_t n = given.n;
    return for_each_sample(batch, threads, [=] {
        auto memory = std::make_shared<Scratch<F>>(Scaling<F>::scratch(n));
        auto scaling = std::make_shared<Scaling<F>>(n, *memory);
        F* log_row = memory->take(n);
        return [=, keep = memory](int64_t sample) {
            const int64_t distinct = given.columns(sample), copies = n - distinct + 1;
            F *own_cost = cost + sample * n * n, *own_plan = plan + sample * n * n;
            l1_distances(given.x + sample * n * given.d, given.nodes(sample), n, distinct, n, own_cost);
            if (given.further) {
                const F* own_further = given.further + sample * n * n;
                for (int64_t i = 0; i < n; ++i)
                    for (int64_t j = 0; j < distinct; ++j) own_cost[i * n + j] += own_further[i * n + j];
            }
            F total = 0;
            for (int64_t i = 0; i < n; ++i) {
                F row = 0;
                for (int64_t j = 0; j < distinct - 1; ++j) row += own_cost[i * n + j];
                total += row + F(copies) * own_cost[i * n + distinct - 1];
            }
            totals[sample] = total = std::max(least, total);
            for (int64_t i = 0; i < n; ++i)
                for (int64_t j = 0; j < distinct; ++j) own_cost[i * n + j] /= total;
            scale(*scaling, own_cost, epsilon, n, distinct, steps, own_plan, rows + sample * steps * n,
                  columns + sample * (steps + 1) * n, log_row);
            // Distances whose sum overflows would else be all alike.
            F own_mass = total < std::numeric_limits<F>::infinity() ? F(0) : std::numeric_limits<F>::quiet_NaN();
            for (int64_t i = 0; i < n; ++i)
                for (int64_t j = 0; j < distinct; ++j) own_mass += own_plan[i * n + j];
            mass[sample] = own_mass;
            share_copies(own_plan, n, n, distinct);
        };
    });
}

// to_padding: (batch, d), zero where a sample has no such node.
template <class F>
bool l1_plan_backward(const Embeddings<F>& given, F epsilon, F least, const F* cost, const F* totals, const F* rows,
                      const F* columns, const F* plan_gradient, int64_t batch, int64_t steps, int64_t threads,
                      F* to_x, F* to_y, F* to_padding) {
    const int64_t n = given.n, d = given.d;
    return for_each_sample(batch, threads, [=] {
        auto memory = std::make_shared<Scratch<F>>(Reverse<F>::scratch(n, steps) + L1Gradient<F>::scratch(n));
        auto reverse = std::make_shared<Reverse<F>>(n, steps, *memory);
        auto distances = std::make_shared<L1Gradient<F>>(n, *memory);
        F* means = memory->take(n);
        return [=, keep = memory](int64_t sample) {
            const int64_t distinct = given.columns(sample), stride = padded<F>(distinct);
            const F* own_cost = cost + sample * n * n;
            unscale(*reverse, own_cost, epsilon, n, distinct, rows + sample * steps * n,
                    columns + sample * (steps + 1) * n, steps, plan_gradient + sample * n * n, means);
            // Of C = D / sum D: each distance also moves the sum, unless that is held at its least. The last column
            // has what its copies have together: what each of them has by itself sums up to it.
            F* gradient = reverse->gradient;
            F paid = 0;
            for (int64_t i = 0; i < n; ++i)
                for (int64_t j = 0; j < distinct; ++j) paid += gradient[i * stride + j] * own_cost[i * n + j];
            const F total = totals[sample], factor = 1 / (-epsilon * total), shared = total > least ? paid : F(0);
            const F copies = F(n - distinct + 1);
            for (int64_t i = 0; i < n; ++i) {
                F* row = gradient + i * stride;
                for (int64_t j = 0; j < distinct - 1; ++j) row[j] = (row[j] - shared) * factor;
                row[distinct - 1] = (row[distinct - 1] - copies * shared) * factor;
            }
            F* own_padding = to_padding + sample * d;
            if (given.counts[sample] == n) std::fill(own_padding, own_padding + d, F(0));
            distances->run(given.x + sample * n * d, given.nodes(sample), gradient, n, distinct, stride,
                           to_x + sample * n * d, to_y + given.starts[sample] * d, own_padding);
        };
    });
}

}  // namespace graphwright
