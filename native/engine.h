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

// What is read out of a trajectory [steps, units, lanes]: x = W r [steps, responses, lanes], and the sum over steps and
// units of r² [lanes] (null: not wanted). Each lane is summed alone, so that cutting a batch changes no bit.
template <class T>
void read_out(Index steps, Index units, Index responses, Index lanes, const T *trajectory, const T *readout, T *x, T *power,
              int threads);
// Its gradient in the trajectory; either gradient given may be null.
template <class T>
void read_out_backward(Index steps, Index units, Index responses, Index lanes, const T *trajectory, const T *readout,
                       const T *in_x, const T *in_power, T *out, int threads);

} // namespace lapsus
