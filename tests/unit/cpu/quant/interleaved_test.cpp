// The interleaved block-quantized layout: every block unpacks bit for bit, dequantized values are those of the blocks,
// and matmuls with x in 8 bits stay within the error bound, with the same bits for any number of rows, partition or
// instruction.
#include "rlx/backends/cpu/quant/interleaved_layout.h"

#include <algorithm>
#include <array>
#include <bit>

#include "rlx/tensor/half.h"
#include "tests/unit/cpu/matmul/packed_matmul.h"

namespace rlx::cpu::test {
namespace {

constexpr QuantScheme kInterleavableSchemes[] = {QuantScheme::Q4_0, QuantScheme::Q4_1, QuantScheme::Q5_0,
                                                 QuantScheme::Q5_1, QuantScheme::Q8_0, QuantScheme::Q4_K,
                                                 QuantScheme::Q5_K, QuantScheme::Q6_K};

// The kernels of an instruction set, with each int8 dot-product instruction of the machine.
struct InterleavedSet {
  const KernelTable* table;
  const InterleavedKernels* kernels;
};
std::vector<InterleavedSet> interleaved_sets() {
  std::vector<InterleavedSet> out;
  for (const KernelTable* t : tables())
    for (const Int8Matmul p : int8_matmul(t->isa)) out.push_back({t, &interleaved_kernels(t->isa, p)});
  return out;
}

// The blocks of [n, k] weights and their dequantized values.
struct Blocks {
  QuantScheme scheme;
  std::int64_t n, k;
  std::vector<std::byte> bytes;
  std::vector<float> numbers;

  Blocks(QuantScheme s, std::int64_t columns, std::int64_t depth) : scheme(s), n(columns), k(depth) {
    const BlockLayout& l = block_layout(s);
    bytes.resize(static_cast<std::size_t>(n * k / l.elements * l.bytes));
    numbers.resize(static_cast<std::size_t>(n * k));
  }
  void decode() { dequantize_blocks(scheme, bytes, numbers); }
  static Blocks of_normals(QuantScheme s, std::int64_t n, std::int64_t k, unsigned seed) {
    Blocks b(s, n, k);
    std::mt19937 rng(seed);
    std::normal_distribution<float> normal(0, 0.1F);
    for (float& v : b.numbers) v = normal(rng);
    quantize_blocks(s, b.numbers, b.bytes);
    b.decode();
    return b;
  }
  static Blocks of_any_bits(QuantScheme s, std::int64_t n, std::int64_t k, unsigned seed) {
    Blocks b(s, n, k);
    std::mt19937 rng(seed);
    for (std::byte& v : b.bytes) v = static_cast<std::byte>(rng());
    return b;
  }
};

struct Encoded {
  ops::Relayout op;
  ops::PackedSource at;
  std::vector<std::byte> storage;
  const std::byte* panels = nullptr;
};
Encoded encoded(const KernelTable& t, const Blocks& b) {
  ConstantMatrix m{b.k, b.n, DType::F32, DType::U8, MatmulPrecision::Int8};
  m.scheme = b.scheme;
  Encoded e;
  e.op = {*interleaved_layout(t, m), b.k, b.n, false, DType::F32, {b.n, 0, 1, b.k}, b.scheme};
  e.at = e.op.source(0);
  e.storage.assign(static_cast<std::size_t>(e.op.form.bytes) + 64, std::byte{0xff});
  const auto address = reinterpret_cast<std::uintptr_t>(e.storage.data());
  std::byte* to = e.storage.data() + (64 - address % 64) % 64;
  e.panels = to;
  REQUIRE(reads_interleaved(t, e.op.form, b.k, b.n));
  REQUIRE(interleaved_scheme(e.op.form) == b.scheme);
  const std::int64_t cut = b.n / 3;  // in parts that end inside a group of interleaved columns
  for (const auto& [begin, end] : {std::pair{cut, b.n}, std::pair{std::int64_t{0}, cut}})
    encode_interleaved({e.op, e.at, 0, begin, end}, b.bytes.data(), to);
  return e;
}

std::int64_t depth_of(QuantScheme s, std::int64_t blocks) { return block_layout(s).elements * blocks; }

TEST_CASE("strips: blocks of any bits come back, in pieces") {
  for (const KernelTable* t : tables())
    for (const QuantScheme s : kInterleavableSchemes)
      for (const std::int64_t n : {1, 7, 16, 37})
        for (const std::int64_t blocks : {1, 3, 4}) {
          CAPTURE(isa_name(t->isa));
          CAPTURE(quant_scheme_name(s));
          CAPTURE(n);
          CAPTURE(blocks);
          const Blocks b = Blocks::of_any_bits(s, n, depth_of(s, blocks), static_cast<unsigned>(n));
          const Encoded e = encoded(*t, b);
          std::vector<std::byte> back(b.bytes.size(), std::byte{0x11});
          decode_interleaved({e.op, e.at, 0, 0, n}, e.panels, back.data());
          CHECK(back == b.bytes);
          // Every byte of the layout is written, so equal weights make equal files.
          const Encoded again = [&] {
            Encoded other = encoded(*t, b);
            return other;
          }();
          CHECK(std::equal(e.panels, e.panels + e.op.form.bytes, again.panels));
        }
}

TEST_CASE("strips: of a scheme without them, or columns that end inside a block, none are made") {
  const KernelTable& t = *tables().front();
  ConstantMatrix m{256, 16, DType::F32, DType::U8, MatmulPrecision::Int8};
  for (const QuantScheme s : {QuantScheme::Affine, QuantScheme::Q2_K, QuantScheme::Q3_K}) {
    m.scheme = s;
    CHECK_FALSE(interleaved_layout(t, m));
  }
  m.scheme = QuantScheme::Q4_K;
  CHECK(interleaved_layout(t, m)->lossless);
  CHECK(packed_layout_text(*interleaved_layout(t, m)) != packed_layout_text(*[&] {
          ConstantMatrix exact = m;
          exact.allowed_loss = MatmulPrecision::Exact;
          return interleaved_layout(t, exact);
        }()));
  m.k = 128;
  CHECK_FALSE(interleaved_layout(t, m));
  PackedLayout odd = *interleaved_layout(t, {256, 16, DType::F32, DType::U8, MatmulPrecision::Int8, QuantScheme::Q4_0});
  for (const std::vector<std::int64_t>& params :
       {std::vector<std::int64_t>{}, {99, 16, 1, 1}, {-1, 16, 1, 1}, {0, 0, 1, 1}, {0, 16, 2, 1}, {0, 16, 1, 77}}) {
    odd.params = params;
    CHECK_FALSE(interleaved_panels_of(odd));
  }
}

TEST_CASE("strips: decoded numbers are those of the blocks, bit for bit") {
  for (const InterleavedSet& set : interleaved_sets())
    for (const QuantScheme s : kInterleavableSchemes)
      for (const bool any_bits : {false, true}) {
        CAPTURE(isa_name(set.table->isa));
        CAPTURE(quant_scheme_name(s));
        const std::int64_t n = set.table->lanes_f32 * 2, k = depth_of(s, 3);
        Blocks b = any_bits ? Blocks::of_any_bits(s, n, k, 5) : Blocks::of_normals(s, n, k, 5);
        b.decode();
        const Encoded e = encoded(*set.table, b);
        Buffer panel(k * n);
        set.kernels->decode(interleaved_panels_of(e.op.form)->kind, k, e.panels, 2, panel.data());
        CHECK(panel.intact());
        bool same = true;
        for (std::int64_t j = 0; j < n; ++j)
          for (std::int64_t i = 0; i < k; ++i) {
            const float got = panel[i * n + j], want = b.numbers[static_cast<std::size_t>(j * k + i)];
            same = same && (std::isnan(want) ? std::isnan(got)
                                             : std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(want));
          }
        CHECK(same);
      }
}

// x times the interleaved weights, with all chunks in reverse order.
void multiply(const InterleavedSet& set, const Encoded& e, const Buffer& x, std::int64_t m, Buffer& c, int threads,
              const GemmEpilogue& epilogue = {}) {
  MatmulOperands p = packed_b_operands(m, e.op.n, e.op.k);
  p.b_blocks = interleaved_panels_of(e.op.form)->kind;
  p.a = x.data(), p.b = e.panels, p.c = c.data(), p.epilogue = epilogue;
  run_packed(set.kernels->matmul, p, threads);
  CHECK(c.intact());
}

// The error bound of quant/interleaved_kernels.h, for F32 sums in the order given there.
struct Bound {
  double want = 0, loss = 0;
};
Bound bound_of(const Buffer& x, const Blocks& b, std::int64_t i, std::int64_t j) {
  Bound out;
  double terms = 0;
  for (std::int64_t k0 = 0; k0 < b.k; k0 += kInterleavedGroup) {
    double weights = 0;
    Worst largest;
    for (std::int64_t k = k0; k < k0 + kInterleavedGroup; ++k) {
      const double xk = x[i * b.k + k], w = b.numbers[static_cast<std::size_t>(j * b.k + k)];
      out.want += xk * w;
      terms += std::fabs(xk * w);
      largest.add(xk, 0);
      weights += std::fabs(w);
    }
    out.loss += (largest.value() / 254 + 0x1p-119) * weights;
    terms += largest.value() * weights;  // minima and the values above them are summed separately
  }
  out.loss += 4e-6 * terms;
  REQUIRE(std::isfinite(out.want + out.loss));
  return out;
}

TEST_CASE("strips: products of x in 8 bits lose what they may, at any size") {
  for (const InterleavedSet& set : interleaved_sets())
    for (const QuantScheme s : kInterleavableSchemes)
      for (const std::array<std::int64_t, 3>& extents : {std::array<std::int64_t, 3>{1, 1, 1},
                                                         {2, 48, 2},
                                                         {3, 17, 3},
                                                         {4, 40, 1},
                                                         {5, 33, 5},
                                                         {13, 64, 2},
                                                         {40, 50, 1}}) {
        const std::int64_t m = extents[0], n = extents[1], k = depth_of(s, extents[2]);
        INFO(isa_name(set.table->isa), " ", static_cast<int>(set.kernels->kind), " ", quant_scheme_name(s), " ", m, "x",
             n, "x", k);
        const Blocks b = Blocks::of_normals(s, n, k, 7);
        const Encoded e = encoded(*set.table, b);
        Buffer x(m * k), c(m * n, kNan);
        randomize(x, 11, -3, 3);
        multiply(set, e, x, m, c, 2);
        Worst worst;
        for (std::int64_t i = 0; i < m * n; ++i) {
          const Bound bound = bound_of(x, b, i / n, i % n);
          worst.add(c[i], bound.want, bound.loss);
        }
        CHECK(worst.value() <= 1);
        if (k >= 64) CHECK(worst.value() > 0.01);  // the bound is not far above the real error
      }
}

TEST_CASE("strips: a row has the same bits alone and among 1 to 64, in every cut, with any instructions") {
  const std::int64_t n = 50;
  for (const KernelTable* t : tables())
    for (const QuantScheme s : kInterleavableSchemes) {
      CAPTURE(isa_name(t->isa));
      CAPTURE(quant_scheme_name(s));
      const std::int64_t k = depth_of(s, 3);
      const Blocks b = Blocks::of_normals(s, n, k, 9);
      const Encoded e = encoded(*t, b);
      Buffer x(64 * k), all(64 * n);
      randomize(x, 3);
      multiply({t, &interleaved_kernels(t->isa, Int8Matmul::Pairs)}, e, x, 64, all, 1);
      bool same = true;
      for (const Int8Matmul p : int8_matmul(t->isa)) {
        for (std::int64_t m = 1; m <= 64; ++m) {
          Buffer c(m * n, kNan);
          multiply({t, &interleaved_kernels(t->isa, p)}, e, x, m, c,
                   m % 3 == 0 ? kFinestTiling : static_cast<int>(m % 3));
          same = same && std::equal(c.data(), c.data() + m * n, all.data());
        }
      }
      CHECK(same);
    }
}

TEST_CASE("strips: what is not finite, nothing and next to nothing in x and in the weights") {
  for (const InterleavedSet& set : interleaved_sets())
    for (const QuantScheme s : kInterleavableSchemes) {
      CAPTURE(isa_name(set.table->isa));
      CAPTURE(quant_scheme_name(s));
      const std::int64_t n = 20, k = depth_of(s, 2), m = 8;
      Blocks b = Blocks::of_normals(s, n, k, 1);
      const BlockLayout& l = block_layout(s);
      const auto set_half = [&](std::int64_t column, std::int64_t block, int at, std::uint16_t bits) {
        std::byte* to = b.bytes.data() + (column * 2 + block) * l.bytes + at;
        to[0] = static_cast<std::byte>(bits & 255), to[1] = static_cast<std::byte>(bits >> 8);
      };
      set_half(3, 1, l.d_at, 0x7c00);  // infinite
      set_half(4, 0, l.d_at, 0x7e00);  // NaN
      for (int at = 0; at < l.bytes; ++at) b.bytes[static_cast<std::size_t>(5 * 2 * l.bytes + at)] = std::byte{0};
      set_half(6, 0, l.d_at, 0x0001);  // the smallest number of F16
      if (l.m_at >= 0) set_half(6, 0, l.m_at, 0x0002), set_half(7, 1, l.m_at, 0xfc00);
      b.decode();
      const Encoded e = encoded(*set.table, b);
      Buffer x(m * k), c(m * n, 7);
      randomize(x, 2);
      x[1 * k + 40] = kNan;
      x[2 * k + 1] = kInf;
      x[3 * k + k - 1] = -kInf;
      for (std::int64_t i = 0; i < k; ++i) {
        x[4 * k + i] = i % 2 == 0 ? -0.0F : 0.0F;
        x[5 * k + i] *= 1e-39F;               // the whole row is tiny
        x[6 * k + i] *= i < 32 ? 1e-37F : 1;  // one block is tiny
        x[7 * k + i] *= 1e30F;
      }
      multiply(set, e, x, m, c, 1);
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          CAPTURE(i);
          CAPTURE(j);
          const bool lost_column = j == 3 || j == 4 || (j == 7 && l.m_at >= 0);
          if (i >= 1 && i <= 3) {
            CHECK(std::isnan(c[i * n + j]));
          } else if (lost_column) {
            CHECK_FALSE(std::isfinite(c[i * n + j]));
          } else {
            const Bound bound = bound_of(x, b, i, j);
            CHECK(rlx::test::difference(c[i * n + j], bound.want) <= bound.loss);
            if (i == 4) CHECK(c[i * n + j] == 0);
          }
        }
    }
}

TEST_CASE("strips: epilogues are those of the other products") {
  const std::int64_t m = 6, n = 37, k = 64;
  for (const InterleavedSet& set : interleaved_sets()) {
    CAPTURE(isa_name(set.table->isa));
    const Blocks b = Blocks::of_normals(QuantScheme::Q4_0, n, k, 4);
    const Encoded e = encoded(*set.table, b);
    Buffer x(m * k), plain(m * n), bias(n), residual(m * n), mul(m * n);
    randomize(x, 1), randomize(bias, 2), randomize(residual, 3), randomize(mul, 4);
    multiply(set, e, x, m, plain, 1);
    GemmEpilogue all;
    all.alpha = 0.5F, all.act = Act::Relu, all.bias = bias.data();
    all.residual = residual.data(), all.mul = mul.data(), all.ld_residual = all.ld_mul = n;
    for (const bool after : {false, true}) {
      all.residual_after_act = after;
      Buffer c(m * n, kNan);
      multiply(set, e, x, m, c, 2, all);
      bool same = true;
      for (std::int64_t i = 0; i < m * n; ++i) {
        float t = 0.5F * plain[i];
        t += bias[i % n];
        if (!after) t += residual[i];
        t = std::max(t, 0.0F);
        t *= mul[i];
        if (after) t += residual[i];
        same = same && c[i] == t;
      }
      CHECK(same);
    }
  }
}

}  // namespace
}  // namespace rlx::cpu::test
