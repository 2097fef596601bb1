// Compiled once for every instruction set, with LAPSUS_ISA its name.
#include "noise.h"
#include "relu.h"
#include "softplus.h"

namespace lapsus {

#define LAPSUS_TEXT(x) #x
#define LAPSUS_NAME(x) LAPSUS_TEXT(x)

namespace LAPSUS_ISA {

template <template <class> class Tree, class T> Kernels<T> kernels_of() {
    using K = Tree<T>;
    return {K::row, K::prepared_size, K::scratch_size, K::prepare, K::forward, K::backward};
}

template <class T> Kernels<T> kernels(bool softplus) {
    return softplus ? kernels_of<Softplus, T>() : kernels_of<Relu, T>();
}

const InstructionSet &instruction_set() {
    static constexpr InstructionSet set{LAPSUS_NAME(LAPSUS_ISA), kernels<float>, kernels<double>, Normal::fill};
    return set;
}

} // namespace LAPSUS_ISA
} // namespace lapsus
