// Packed B: 16-bit elements give the bits of their widened values, and every packing has an exact unpacking.
#include "rlx/backends/cpu/matmul/packed_b.h"

#include <bit>

#include "rlx/tensor/half.h"
#include "rlx/tensor/visit.h"
#include "tests/unit/cpu/matmul/packed_matmul.h"

namespace rlx::cpu::test {
namespace {

constexpr std::int64_t kDepths[] = {0, 1, 7, 64, 77};
constexpr std::int64_t kColumnCounts[] = {1, 5, 16, 17, 33, 48, 100};

/// Random bits of 16-bit floats, with NaN, infinities, zeros and subnormals among them.
std::vector<std::uint16_t> any_halves(std::int64_t n, unsigned seed, bool only_finite, PackedBType type) {
  std::mt19937 rng(seed);
  std::vector<std::uint16_t> out(static_cast<std::size_t>(n));
  for (std::uint16_t& h : out) {
    h = static_cast<std::uint16_t>(rng());
    const std::uint16_t exponent = type == PackedBType::BF16 ? 0x7f80 : 0x7c00;
    if (only_finite && (h & exponent) == exponent) h = static_cast<std::uint16_t>(h & ~exponent);
    if (only_finite && type == PackedBType::BF16) h = static_cast<std::uint16_t>((h & 0x807f) | 0x3f00);  // near 1
  }
  return out;
}

float widened(PackedBType type, std::uint16_t h) {
  return type == PackedBType::BF16 ? bf16_bits_to_float(h) : f16_bits_to_float(h);
}

TEST_CASE("panels: products of 16-bit panels have the bits of products of the widened values") {
  for (const KernelTable* t : tables())
    for (const PackedBType type : {PackedBType::BF16, PackedBType::F16})
      for (const bool finite : {true, false})
        for (const std::int64_t n : kColumnCounts)
          for (const std::int64_t k : kDepths)
            for (const std::int64_t m : {1, 3, 8, 29}) {
              CAPTURE(isa_name(t->isa));
              CAPTURE(static_cast<int>(type));
              CAPTURE(n);
              CAPTURE(k);
              const std::vector<std::uint16_t> b = any_halves(k * n, static_cast<unsigned>(n * 100 + k), finite, type);
              Buffer wide(k * n), a(m * k), c(m * n), want(m * n), packed(t->packed_size_f32(k, n), kNan);
              for (std::int64_t i = 0; i < k * n; ++i) wide[i] = widened(type, b[static_cast<std::size_t>(i)]);
              randomize(a, 3);
              std::vector<std::uint16_t> narrow(static_cast<std::size_t>(t->packed_size_f32(k, n)), 0xffff);
              t->pack_b_f32(wide.data(), n, 1, k, n, 0, n, packed.data());
              t->pack_b_16(b.data(), n, 1, k, n, 0, n, narrow.data());
              MatmulOperands g = packed_b_operands(m, n, k);
              g.a = a.data(), g.b = packed.data(), g.c = want.data();
              run_packed(*t, g, 2);
              g.b = narrow.data(), g.c = c.data();
              run_packed(*t, g, 2, type);
              CHECK(c.intact());
              bool same = true;
              for (std::int64_t i = 0; i < m * n; ++i)
                same = same && (std::isnan(want[i])
                                    ? std::isnan(c[i])
                                    : std::bit_cast<std::uint32_t>(c[i]) == std::bit_cast<std::uint32_t>(want[i]));
              CHECK(same);
            }
}

// Packs a source [k, n] or [n, k] of dtype `from` into panels of `type`, with column ranges in any order, and unpacks
// it.
void check_round_trip(const KernelTable& t, DType from, PackedBType type, std::int64_t k, std::int64_t n,
                      bool transposed) {
  const DType stored[] = {DType::F32, DType::BF16, DType::F16};
  const DType kept = stored[static_cast<int>(type)];
  ops::Relayout op{packed_b_layout(t, {k, n, DType::F32, kept}), k, n, false, DType::F32, {}};
  const ops::PackedSource at{n, 0, transposed ? 1 : n, transposed ? k : 1};
  std::vector<std::byte> values(size_bytes(from, k * n) + 16), back(size_bytes(kept, k * n) + 16),
      layout(static_cast<std::size_t>(op.form.bytes), std::byte{0xff});
  for (std::int64_t i = 0; i < k * n; ++i) store_element(values.data(), from, i, static_cast<double>(i % 251) - 120.5);
  REQUIRE(reads_packed_b(t, op.form, k, n));
  const std::int64_t cut = n / 3;
  for (const auto& [begin, end] : {std::pair{cut, n}, std::pair{std::int64_t{0}, cut}})
    encode_packed_b(t, {op, at, 0, begin, end}, from, values.data(), layout.data());
  decode_packed_b({op, at, 0, 0, n}, layout.data(), kept, back.data());
  bool same = true;
  for (std::int64_t i = 0; i < k * n; ++i) {
    std::byte rounded[8];
    store_element(rounded, kept, 0, load_element<double>(values.data(), from, i));
    same = same && load_element<double>(back.data(), kept, i) == load_element<double>(rounded, kept, 0);
  }
  CHECK(same);
  // After the last column there are zeros, which the matmul adds.
  const Panels p = *panels_of(op.form);
  for (std::int64_t j = n; j % p.lanes != 0; ++j) {
    std::vector<float> column(static_cast<std::size_t>(k), 7);
    read_panel_column(p, k, n, j, layout.data(), column.data());
    for (float v : column) CHECK(v == 0.0F);
  }
}

TEST_CASE("panels: from every dtype and layout, in pieces, and back") {
  for (const KernelTable* t : tables())
    for (const DType from : {DType::F32, DType::BF16, DType::F16, DType::F64, DType::I8})
      for (const PackedBType type : {PackedBType::F32, PackedBType::BF16, PackedBType::F16})
        for (const std::int64_t n : {1, 17, 100})
          for (const std::int64_t k : {1, 33, 70})
            for (const bool transposed : {false, true}) {
              CAPTURE(isa_name(t->isa));
              CAPTURE(dtype_name(from));
              CAPTURE(static_cast<int>(type));
              check_round_trip(*t, from, type, k, n, transposed);
            }
}

TEST_CASE("panels: codes lie within half a step of the values, from every dtype and layout, in pieces") {
  for (const KernelTable* t : tables())
    for (const DType from : {DType::F32, DType::BF16, DType::F16, DType::F64, DType::I8})
      for (const std::int64_t n : {1, 17, 100})
        for (const std::int64_t k : {1, 33, 70})
          for (const bool transposed : {false, true}) {
            CAPTURE(isa_name(t->isa));
            CAPTURE(dtype_name(from));
            const ops::Relayout op{
                packed_b_layout(*t, {k, n, DType::F32, from, MatmulPrecision::Int8}), k, n, false, DType::F32, {}};
            REQUIRE(reads_packed_b(*t, op.form, k, n));
            CHECK(!op.form.lossless);
            const ops::PackedSource at{n, 0, transposed ? 1 : n, transposed ? k : 1};
            std::vector<std::byte> values(size_bytes(from, k * n) + 16), back(size_bytes(DType::F64, k * n) + 16),
                layout(static_cast<std::size_t>(op.form.bytes), std::byte{0xff});
            for (std::int64_t i = 0; i < k * n; ++i)
              store_element(values.data(), from, i,
                            static_cast<double>(i * 37 % 251 - 125) / (from == DType::I8 ? 1 : 8));
            for (const auto& [begin, end] : {std::pair{n / 3, n}, std::pair{std::int64_t{0}, n / 3}})
              encode_packed_b(*t, {op, at, 0, begin, end}, from, values.data(), layout.data());
            decode_packed_b({op, at, 0, 0, n}, layout.data(), DType::F64, back.data());
            const auto element = [&](const std::vector<std::byte>& of, DType dtype, std::int64_t kk, std::int64_t j) {
              return load_element<double>(of.data(), dtype, kk * at.k_stride + j * at.n_stride);
            };
            rlx::test::Worst worst;  // in steps
            for (std::int64_t j = 0; j < n; ++j) {
              rlx::test::Worst largest;
              for (std::int64_t kk = 0; kk < k; ++kk) largest.add(element(values, from, kk, j), 0);
              REQUIRE(std::isfinite(largest.value()));
              for (std::int64_t kk = 0; kk < k; ++kk)
                worst.add(element(back, DType::F64, kk, j), element(values, from, kk, j),
                          std::max(largest.value(), 1e-30) / 127);
            }
            CHECK(worst.value() <= 0.5 * (1 + 1e-5));
            const Panels p = *panels_of(op.form);
            for (std::int64_t j = n; j % p.lanes != 0; ++j) {
              std::vector<float> column(static_cast<std::size_t>(k), 7);
              read_panel_column(p, k, n, j, layout.data(), column.data());
              for (float v : column) CHECK(v == 0.0F);
            }
          }
}

TEST_CASE("panels: forms of other kernels, versions and shapes are told apart") {
  const KernelTable& t = *tables().back();
  const PackedLayout layout = packed_b_layout(t, {70, 33, DType::F32, DType::F32});
  CHECK(reads_packed_b(t, layout, 70, 33));
  CHECK(!reads_packed_b(t, layout, 70, 34 + 64));
  for (std::size_t i = 0; i < layout.params.size(); ++i) {
    PackedLayout other = layout;
    other.params[i] += 1;
    CHECK(!reads_packed_b(t, other, 70, 33));
  }
  PackedLayout other = layout;
  other.bytes += 64;
  CHECK(!reads_packed_b(t, other, 70, 33));
  other = layout, other.id = "blocks";
  CHECK(!panels_of(other));
}

}  // namespace
}  // namespace rlx::cpu::test
