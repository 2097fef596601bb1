// One vector type for each instruction set, chosen by the flags that this file is compiled with.
//
// Everything here lives in a namespace named after the instruction set, and nothing here uses the standard library's
// templates: an inline function compiled for AVX must never be the one copy that the linker keeps for all.
#pragma once

#include "problem.h"

#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace lapsus::LAPSUS_ISA {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
constexpr int registers = 32;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
constexpr int registers = 16;
#else
constexpr int vector_bytes = 16;
#if defined(__aarch64__)
constexpr int registers = 32;
#else
constexpr int registers = 16;
#endif
#endif

template <class T> struct Simd {
    static constexpr int width = vector_bytes / sizeof(T);
    typedef T Vector __attribute__((vector_size(vector_bytes)));

    static Vector load(const T *p) {
        Vector v;
        std::memcpy(&v, p, sizeof v);
        return v;
    }
    static void store(T *p, Vector v) { std::memcpy(p, &v, sizeof v); }
    static Vector splat(T x) { return x - Vector{}; }

    // max(0, v) that lets NaN through, so that a network that has blown up shows it.
    static Vector relu(Vector v) {
#if defined(__AVX512F__)
        if constexpr (sizeof(T) == 4) return (Vector)_mm512_max_ps(_mm512_setzero_ps(), (__m512)v);
        else return (Vector)_mm512_max_pd(_mm512_setzero_pd(), (__m512d)v);
#elif defined(__AVX2__)
        if constexpr (sizeof(T) == 4) return (Vector)_mm256_max_ps(_mm256_setzero_ps(), (__m256)v);
        else return (Vector)_mm256_max_pd(_mm256_setzero_pd(), (__m256d)v);
#elif defined(__SSE2__)
        if constexpr (sizeof(T) == 4) return (Vector)_mm_max_ps(_mm_setzero_ps(), (__m128)v);
        else return (Vector)_mm_max_pd(_mm_setzero_pd(), (__m128d)v);
#else
        return v < 0 ? Vector{} : v;
#endif
    }

    // Bit i says whether lane i is positive.
    static unsigned positive(Vector v) {
#if defined(__AVX512F__)
        if constexpr (sizeof(T) == 4) return _mm512_cmp_ps_mask((__m512)v, _mm512_setzero_ps(), _CMP_GT_OQ);
        else return _mm512_cmp_pd_mask((__m512d)v, _mm512_setzero_pd(), _CMP_GT_OQ);
#elif defined(__AVX2__)
        if constexpr (sizeof(T) == 4)
            return _mm256_movemask_ps(_mm256_cmp_ps((__m256)v, _mm256_setzero_ps(), _CMP_GT_OQ));
        else return _mm256_movemask_pd(_mm256_cmp_pd((__m256d)v, _mm256_setzero_pd(), _CMP_GT_OQ));
#elif defined(__SSE2__)
        if constexpr (sizeof(T) == 4) return _mm_movemask_ps(_mm_cmpgt_ps((__m128)v, _mm_setzero_ps()));
        else return _mm_movemask_pd(_mm_cmpgt_pd((__m128d)v, _mm_setzero_pd()));
#else
        unsigned bits = 0;
        for (int i = 0; i < width; ++i) bits |= unsigned(v[i] > 0) << i;
        return bits;
#endif
    }
};

inline int lowest(Word w) { return __builtin_ctzll(w); }

// The bits of w where select is set, packed to the low end.
inline Word compress(Word w, Word select) {
#if defined(__BMI2__)
    return _pext_u64(w, select);
#else
    Word packed = 0;
    for (int i = 0; select; ++i, select &= select - 1) packed |= (w >> lowest(select) & 1) << i;
    return packed;
#endif
}

#if defined(__AVX2__)
inline void transpose8(__m256 v[8]) {
    __m256 a[8], b[8];
    for (int i = 0; i < 4; ++i) {
        a[2 * i] = _mm256_unpacklo_ps(v[2 * i], v[2 * i + 1]);
        a[2 * i + 1] = _mm256_unpackhi_ps(v[2 * i], v[2 * i + 1]);
    }
    for (int i = 0; i < 2; ++i) {
        b[4 * i + 0] = _mm256_shuffle_ps(a[4 * i], a[4 * i + 2], 0x44);
        b[4 * i + 1] = _mm256_shuffle_ps(a[4 * i], a[4 * i + 2], 0xee);
        b[4 * i + 2] = _mm256_shuffle_ps(a[4 * i + 1], a[4 * i + 3], 0x44);
        b[4 * i + 3] = _mm256_shuffle_ps(a[4 * i + 1], a[4 * i + 3], 0xee);
    }
    for (int i = 0; i < 4; ++i) {
        v[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
        v[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
    }
}
#endif

// out[j][i] = in[i][j]. With whole tiles of eight the rows must be readable and writable up to multiples of eight.
template <class T>
void transpose(const T *in, Index rows, Index in_stride, Index columns, T *out, Index out_stride) {
    Index done = 0;
#if defined(__AVX2__)
    if constexpr (sizeof(T) == 4) {
        done = rows / 8 * 8;
        Index across = columns / 8 * 8;
        for (Index i = 0; i < done; i += 8) {
            for (Index j = 0; j < across; j += 8) {
                __m256 tile[8];
                for (int k = 0; k < 8; ++k) tile[k] = _mm256_loadu_ps(in + (i + k) * in_stride + j);
                transpose8(tile);
                for (int k = 0; k < 8; ++k) _mm256_storeu_ps(out + (j + k) * out_stride + i, tile[k]);
            }
            for (Index j = across; j < columns; ++j)
                for (Index k = i; k < i + 8; ++k) out[j * out_stride + k] = in[k * in_stride + j];
        }
    }
#endif
    for (Index i = done; i < rows; ++i)
        for (Index j = 0; j < columns; ++j) out[j * out_stride + i] = in[i * in_stride + j];
}

// words[i] has one bit for each of 64 lanes; out[lane * stride] gets the bits i = 0 ... 31 of that lane.
inline void transpose_bits(const Word *words, std::uint32_t *out, Index stride) {
#if defined(__AVX2__)
    const __m256i pairs = _mm256_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15, 0, 8, 1, 9, 2, 10, 3,
                                           11, 4, 12, 5, 13, 6, 14, 7, 15);
    __m256 tile[8];
    for (int i = 0; i < 8; ++i) {
        // Four words of eight bytes become eight groups of four bytes.
        __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(words + 4 * i));
        v = _mm256_shuffle_epi8(v, pairs);
        __m256i low = _mm256_permute4x64_epi64(v, 0x44), high = _mm256_permute4x64_epi64(v, 0xee);
        // low: leaves 0,1 twice; high: leaves 2,3 twice. The low half takes bytes of lanes 0-31, the high half 32-63.
        __m256i lo = _mm256_blend_epi32(low, _mm256_srli_si256(low, 8), 0xf0);
        __m256i hi = _mm256_blend_epi32(high, _mm256_srli_si256(high, 8), 0xf0);
        v = _mm256_unpacklo_epi16(lo, hi);
        tile[i] = _mm256_castsi256_ps(v);
    }
    transpose8(tile);
    for (int byte = 0; byte < 8; ++byte) {
        __m256i v = _mm256_castps_si256(tile[byte]);
        for (int bit = 7; bit >= 0; --bit) {
            out[(8 * byte + bit) * stride] = std::uint32_t(_mm256_movemask_epi8(v));
            v = _mm256_add_epi8(v, v);
        }
    }
#else
    for (int lane = 0; lane < 64; ++lane) out[lane * stride] = 0;
    for (int byte = 0; byte < 8; ++byte)
        for (int part = 0; part < 4; ++part) {
            Word x = 0;
            for (int i = 0; i < 8; ++i) x |= (words[8 * part + i] >> (8 * byte) & 255) << (8 * i);
            // Transpose an 8 x 8 bit matrix by swapping ever larger off-diagonal blocks.
            Word t = (x ^ (x >> 7)) & 0x00aa00aa00aa00aaull;
            x ^= t ^ (t << 7);
            t = (x ^ (x >> 14)) & 0x0000cccc0000ccccull;
            x ^= t ^ (t << 14);
            t = (x ^ (x >> 28)) & 0x00000000f0f0f0f0ull;
            x ^= t ^ (t << 28);
            for (int bit = 0; bit < 8; ++bit)
                out[(8 * byte + bit) * stride] |= std::uint32_t(x >> (8 * bit) & 255) << (8 * part);
        }
#endif
}

} // namespace lapsus::LAPSUS_ISA
