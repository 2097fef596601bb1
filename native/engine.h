// The rollout over all blocks: threads, and the order in which sums are made.
#pragma once

#include "problem.h"

namespace lapsus {

const InstructionSet &instruction_set(const char *name); // the best one for this machine if name is empty
bool instruction_set_usable(const char *name);
const char *const *instruction_set_names(); // ends with null

template <class T> void forward(const InstructionSet &, const Problem<T> &, int threads);
template <class T> void backward(const InstructionSet &, const Problem<T> &, const Gradients<T> &, int threads);

// out [rows, conditions, trials]: the draws of a condition depend on the key, its number, rows and trials alone.
void normal(const InstructionSet &, std::uint32_t key0, std::uint32_t key1, std::uint32_t stream, Index first_condition,
            Index conditions, Index rows, Index trials, float *out, int threads);

// Adam: the moments follow the gradient, and its step is written over it.
struct Adam {
    float beta_1, beta_2, rate, unbias, epsilon;
};
void adam(Index count, float *gradient, float *moment_1, float *moment_2, Adam);

// x = W r [steps, responses, lanes] of rates, or of noise, [steps, units, lanes].
template <class T>
void project(Index steps, Index units, Index responses, Index lanes, const T *r, const T *readout, T *x);

} // namespace lapsus
