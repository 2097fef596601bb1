// What a rollout is, in plain arrays. Layouts are those of docs/design.md: trials last, layers leaves first, soma last.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lapsus {

using Index = std::int64_t;
using Word = std::uint64_t;

// This header is compiled once for every instruction set, so none of its functions may be left to the linker.
#define LAPSUS_INLINE inline __attribute__((always_inline))

// A block is a run of consecutive trials in the flattened order condition * K + trial; one bit of a word stands for one
// of its trials. Blocks start afresh at every group of conditions, so that splitting a batch between groups changes no
// sum.
constexpr Index block_lanes = 64;

template <class T> struct Problem {
    Index units, layers, conditions, trials, steps, drives, times, responses, forced, group;
    bool softplus;
    double alpha;
    const Index *nodes;            // [layers]
    const Index *children;         // [layers]; children[0] is 0
    const Index *drive_index;      // [steps]
    const Index *time_index;       // [steps]
    const double *sigma;           // [steps]
    const T *leaf_weight;          // [nodes[0], units]
    const T *const *branch_weight; // [layers]; of layer a, one weight for each node of layer a - 1
    const T *const *bias;          // [layers] of [times, nodes[a]]
    const T *drive;                // [drives, conditions, nodes[0]]
    const T *readout;              // [responses, units]
    const T *r0;                   // [units, conditions, trials]
    const T *noise;                // [steps, units, conditions, trials]
    const T *forcing;              // [forced, responses, conditions, trials]
    T *trajectory;                 // [steps + 1, units, conditions, trials]
    T *x;                          // [steps + 1, responses, conditions, trials], or null: W_x r of the trajectory
    T *power;                      // [conditions, trials], or null: the sum over steps and units of r²
    Word *masks;                   // [blocks, steps, all nodes], or null: which nodes are above threshold

    LAPSUS_INLINE Index lanes() const { return conditions * trials; }
    LAPSUS_INLINE Index group_lanes() const { return group * trials; }
    LAPSUS_INLINE Index groups() const { return (conditions + group - 1) / group; }
    LAPSUS_INLINE Index all_nodes() const {
        Index sum = 0;
        for (Index a = 0; a < layers; ++a) sum += nodes[a];
        return sum;
    }
};

// Of the loss in what a rollout gives, each of which may be null, and, to be filled or added to, in what it takes.
template <class T> struct Gradients {
    const T *trajectory, *x, *power;
    T *r0, *leaf_weight, *drive;
    T *const *branch_weight;
    T *const *bias;
};

struct Block {
    Index number, group, first, count;
};

template <class T> LAPSUS_INLINE Index blocks_per_group(const Problem<T> &p) {
    return (p.group_lanes() + block_lanes - 1) / block_lanes;
}

// The last group may be short.
template <class T> LAPSUS_INLINE Index block_count(const Problem<T> &p) {
    if (p.conditions == 0) return 0;
    Index rest = p.lanes() - (p.groups() - 1) * p.group_lanes();
    return (p.groups() - 1) * blocks_per_group(p) + (rest + block_lanes - 1) / block_lanes;
}

template <class T> LAPSUS_INLINE Block block_at(const Problem<T> &p, Index number) {
    Index group = number / blocks_per_group(p);
    Index first = group * p.group_lanes() + (number % blocks_per_group(p)) * block_lanes;
    Index end = (group + 1) * p.group_lanes();
    if (end > p.lanes()) end = p.lanes();
    Index count = end - first < block_lanes ? end - first : block_lanes;
    return {number, group, first, count};
}

// Sums over the trials of one block, later of one group.
template <class T> struct Sums {
    T *leaf;  // [nodes[0], row]
    T *child; // for every node but the soma, leaves first: gradient of the weight to its parent
    T *bias;  // for every layer [times, nodes[a]]
    T *drive; // [drives, conditions of the block, nodes[0]]
};

// What the vector code of one instruction set offers. All memory is the caller's.
template <class T> struct Kernels {
    Index (*row)(const Problem<T> &);            // units padded to whole vectors
    Index (*prepared_size)(const Problem<T> &);  // elements
    Index (*scratch_size)(const Problem<T> &);   // bytes
    void (*prepare)(const Problem<T> &, Index unit, bool gradients, T *prepared);
    void (*forward)(const Problem<T> &, const T *prepared, Block, char *scratch);
    void (*backward)(const Problem<T> &, const Gradients<T> &, const T *prepared, Block, Sums<T>, char *scratch);
};

// Standard normal numbers in runs of 64: run i of a condition is made of the counters 16 i ... 16 i + 15.
struct NormalKey {
    std::uint32_t key0, key1, condition, stream;
};
constexpr Index normal_run = 64;

struct InstructionSet {
    const char *name;
    Kernels<float> (*single)(bool softplus);
    Kernels<double> (*twice)(bool softplus);
    void (*normal)(NormalKey, Word first_run, Index runs, float *out);
};

} // namespace lapsus
