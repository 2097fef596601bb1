// Standard normal numbers from Philox4x32-10 (Salmon et al. 2011) and Box-Muller: a pure function of key and counter.
#pragma once

#include "simd.h"

namespace lapsus::LAPSUS_ISA {

// Sixteen counters at a time, in parts that fill one register; element i of word w goes to out[16 w + i].
struct Normal {
    using S = Simd<float>;
    static constexpr int width = S::width;
    typedef float V __attribute__((vector_size(vector_bytes)));
    typedef std::uint32_t U __attribute__((vector_size(vector_bytes)));
    typedef std::int32_t I __attribute__((vector_size(vector_bytes)));
    typedef std::uint64_t Wide __attribute__((vector_size(vector_bytes)));

    // The low 32 bits of each element times those of the other.
    static Wide half_product(Wide a, Wide b) {
#if defined(__AVX512F__)
        return (Wide)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
        return (Wide)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
        return (Wide)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
        const Wide mask = Wide{} + 0xffffffffull;
        return (a & mask) * (b & mask);
#endif
    }

    // Elements with even and with odd numbers apart, each in the low half of 64 bits: what stands in the high half never
    // reaches a product, so it need not be cleared.
    static void philox(U (&x)[4], std::uint32_t key0, std::uint32_t key1) {
        Wide part[2][4];
        for (int i = 0; i < 4; ++i) part[0][i] = (Wide)x[i], part[1][i] = (Wide)x[i] >> 32;
        const Wide factor0 = Wide{} + 0xD2511F53u, factor1 = Wide{} + 0xCD9E8D57u;
        for (int round = 0; round < 10; ++round) {
            const Wide k0 = Wide{} + key0, k1 = Wide{} + key1;
            for (Wide(&y)[4] : part) {
                const Wide first = half_product(y[0], factor0), second = half_product(y[2], factor1);
                y[0] = (second >> 32) ^ y[1] ^ k0;
                y[1] = second;
                y[2] = (first >> 32) ^ y[3] ^ k1;
                y[3] = first;
            }
            key0 += 0x9E3779B9u;
            key1 += 0xBB67AE85u;
        }
        const Wide mask = Wide{} + 0xffffffffull;
        for (int i = 0; i < 4; ++i) x[i] = (U)((part[0][i] & mask) | (part[1][i] << 32));
    }

    // log of a float in (0, 1]: the exponent apart, and 2 atanh of the mantissa in [sqrt(1/2), sqrt(2)).
    static V logarithm(V x) {
        const I bits = (I)x;
        const I offset = bits - 0x3f3504f3;
        const I exponent = offset >> 23;
        const V m = (V)((offset & 0x7fffff) + 0x3f3504f3);
        const V z = (m - 1.0f) / (m + 1.0f), square = z * z;
        V sum{};
        for (int i = 5; i >= 0; --i) sum = sum * square + 2.0f / float(2 * i + 1);
        return sum * z + __builtin_convertvector(exponent, V) * 0.69314718056f;
    }

    static V root(V x) {
#if defined(__AVX512F__)
        return (V)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX2__)
        return (V)_mm256_sqrt_ps((__m256)x);
#elif defined(__SSE2__)
        return (V)_mm_sqrt_ps((__m128)x);
#else
        for (int i = 0; i < width; ++i) x[i] = __builtin_sqrtf(x[i]);
        return x;
#endif
    }

    // Cosine and sine of 2 pi u / 2^32: the two top bits are the quadrant, the rest an angle of +- a quarter of pi.
    static void turn(U u, V &cosine, V &sine) {
        const U quadrant = (u + 0x20000000u) >> 30;
        const I rest = (I)(u - (quadrant << 30));
        const V a = __builtin_convertvector(rest, V) * 1.4629180792671596e-9f; // 2 pi / 2^32
        const V square = a * a;
        V c = S::splat(2.4801587302e-5f);
        c = c * square - 1.3888888889e-3f;
        c = c * square + 4.1666666667e-2f;
        c = c * square - 0.5f;
        c = c * square + 1.0f;
        V s = S::splat(2.7557319224e-6f);
        s = s * square - 1.9841269841e-4f;
        s = s * square + 8.3333333333e-3f;
        s = s * square - 1.6666666667e-1f;
        s = (s * square + 1.0f) * a;
        const I odd = (quadrant & 1) != 0;
        const V x = odd ? s : c, y = odd ? c : s;
        cosine = (V)((U)x ^ (((quadrant + 1) & 2) << 30));
        sine = (V)((U)y ^ ((quadrant & 2) << 30));
    }

    static void fill(NormalKey key, Word first_run, Index runs, float *out) {
        std::uint32_t numbers[width];
        for (int i = 0; i < width; ++i) numbers[i] = i;
        U number;
        std::memcpy(&number, numbers, sizeof number);
        for (Index run = 0; run < runs; ++run, out += normal_run)
            for (int part = 0; part < 16; part += width) {
                const Word counter = (first_run + run) * 16 + part;
                // A run's sixteen counters differ in their last four bits alone.
                U x[4] = {number + std::uint32_t(counter), U{} + std::uint32_t(counter >> 32), U{} + key.condition,
                          U{} + key.stream};
                philox(x, key.key0, key.key1);
                for (int pair = 0; pair < 4; pair += 2) {
                    // The upper 24 bits, centred in their interval, so that log never sees 0.
                    const V u = (__builtin_convertvector((I)(x[pair] >> 8), V) + 0.5f) * 5.9604644775390625e-8f;
                    const V radius = root(-2.0f * logarithm(u));
                    V cosine, sine;
                    turn(x[pair + 1], cosine, sine);
                    S::store(out + 16 * pair + part, radius * cosine);
                    S::store(out + 16 * pair + 16 + part, radius * sine);
                }
            }
    }
};

} // namespace lapsus::LAPSUS_ISA
