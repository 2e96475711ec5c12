// Exact linear assignment by shortest augmenting paths, from the dual potentials of a similar problem.
#pragma once

#include "lanes.hpp"

namespace graphwright {

// In double precision whatever the costs are in, so that ties of single precision stay ties.
class Assignment {
  public:
    explicit Assignment(int64_t n)
        : n_(n), stride_(padded<double>(n)), memory_((n + 4) * stride_), cost_(memory_.take(n * stride_)),
          column_(memory_.take(n)), shortest_(memory_.take(n)), blocked_(memory_.take(n)), from_(memory_.take(n)),
          row_(n), column_of_(n), row_of_(n), scanned_(n) {
        for (int64_t i = 0; i < n; ++i) std::fill(cost_ + i * stride_ + n, cost_ + (i + 1) * stride_, INFINITE);
    }

    double& cost(int64_t i, int64_t j) { return cost_[i * stride_ + j]; }
    // Potentials: row + column <= cost, equal where a row has its column.
    double row(int64_t i) const { return row_[i]; }
    double column(int64_t j) const { return column_[j]; }
    int64_t column_of(int64_t i) const { return column_of_[i]; }

    void forget() { std::fill(column_, column_ + stride_, 0.0); }

    // The cheapest assignment, false if costs or potentials are not finite. It starts from the column potentials of the
    // last one, which leave few paths to find if the costs are alike.
    bool solve() {
        std::fill(row_of_.begin(), row_of_.end(), -1);
        for (int64_t i = 0; i < n_; ++i) {
            const double* costs = cost_ + i * stride_;
            Vector<double> least = all(INFINITE);
            for (int64_t j = 0; j < stride_; j += LANES) {
                const Vector<double> reduced = load(costs + j) - load(column_ + j);
                store(shortest_ + j, reduced);
                least = smaller(least, reduced);
            }
            row_[i] = smallest(least);
            column_of_[i] = -1;
            for (int64_t j = 0; j < n_; ++j)
                if (shortest_[j] == row_[i] && row_of_[j] < 0) {
                    column_of_[i] = j, row_of_[j] = i;
                    break;
                }
        }
        for (int64_t i = 0; i < n_; ++i)
            if (column_of_[i] < 0 && !augment(i)) return false;
        return true;
    }

  private:
    static constexpr double INFINITE = std::numeric_limits<double>::infinity();
    static constexpr int64_t LANES = Lanes<double>::count;

    static Vector<double> smaller(Vector<double> a, Vector<double> b) { return a < b ? a : b; }
    static double smallest(Vector<double> value) { return -largest<double>(-value); }

    // Dijkstra's search from a free row to a free column along reduced costs; potentials follow. False if no column is
    // near, which only numbers that are not finite can bring about.
    bool augment(int64_t start) {
        std::fill(shortest_, shortest_ + stride_, INFINITE);
        std::fill(blocked_, blocked_ + stride_, 0.0);  // infinite for columns that were reached
        int64_t scanned = 0, i = start, end = -1;
        double distance = 0;
        while (end < 0) {
            scanned_[scanned++] = i;
            const double* costs = cost_ + i * stride_;
            const double offset = distance - row_[i];
            const Vector<double> here = all(double(i));
            Vector<double> least = all(INFINITE);
            for (int64_t j = 0; j < stride_; j += LANES) {
                const Vector<double> held = load(blocked_ + j), known = load(shortest_ + j);
                const Vector<double> through = load(costs + j) - load(column_ + j) + offset + held;
                const Vector<double> now = smaller(through, known);
                store(from_ + j, through < known ? here : load(from_ + j));
                store(shortest_ + j, now);
                least = smaller(least, now + held);
            }
            distance = smallest(least);
            // Of equally near columns a free one ends the search.
            int64_t next = -1;
            for (int64_t j = 0; j < n_; ++j)
                if (shortest_[j] == distance && blocked_[j] == 0 && (next < 0 || row_of_[j] < 0)) {
                    next = j;
                    if (row_of_[j] < 0) break;
                }
            if (next < 0) return false;
            blocked_[next] = INFINITE;
            if (row_of_[next] < 0) end = next;
            else i = row_of_[next];
        }
        row_[start] += distance;
        for (int64_t at = 1; at < scanned; ++at) {
            const int64_t other = scanned_[at];
            row_[other] += distance - shortest_[column_of_[other]];
        }
        for (int64_t j = 0; j < n_; ++j)
            if (blocked_[j] != 0) column_[j] -= distance - shortest_[j];
        for (int64_t j = end;;) {
            const int64_t before = int64_t(from_[j]);
            row_of_[j] = before;
            std::swap(column_of_[before], j);
            if (before == start) break;
        }
        return true;
    }

    int64_t n_, stride_;
    Scratch<double> memory_;
    double *cost_, *column_, *shortest_, *blocked_, *from_;
    std::vector<double> row_;
    std::vector<int64_t> column_of_, row_of_, scanned_;
};

}  // namespace graphwright
