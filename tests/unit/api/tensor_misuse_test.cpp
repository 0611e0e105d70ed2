// Misuse of errors, dtypes, dimensions, shapes and tensors.
#include <algorithm>
#include <limits>

#include "rlx/tensor/block_schemes.h"
#include "rlx/tensor/tensor.h"
#include "rlx/tensor/visit.h"
#include "rlx/tensor/weight_loader.h"
#include "tests/unit/api/misuse.h"

using namespace rlx;

namespace {
using rlx::test::kHigh;
using rlx::test::kLow;
using rlx::test::kNoDType;
}  // namespace

TEST_CASE("misuse: error values") {
  Result<std::string> bad(Diagnostic{ErrorCode::NotFound, "no such thing", {}, {}});
  CHECK_FALSE(bad.ok());
  CHECK_FALSE(static_cast<bool>(bad));
  REFUSED("no such thing", bad.value());
  REFUSED("no such thing", std::as_const(bad).value());
  REFUSED("no such thing", std::move(bad).value());
  REFUSED("no such thing", *bad);  // operator*
  REFUSED("no such thing", *std::as_const(bad));
  REFUSED("no such thing", bad->size());  // operator->
  REFUSED("no such thing", std::as_const(bad)->size());
  Result<std::string> good(std::string("x"));
  REFUSED("holds a value", good.error());

  CHECK(error_code_name(static_cast<ErrorCode>(99)) == "error");
  CHECK(Diagnostic{static_cast<ErrorCode>(99), "", "", ""}.text() == "error: ");
  CHECK(std::string(Error(static_cast<ErrorCode>(99), "").what()) == "error: ");
  CHECK(concat_text(static_cast<const char*>(nullptr), std::string_view(), 1) == "(null)1");
  CHECK(attempt([]() -> int { throw Error(ErrorCode::NotFound, "lost"); }).error().message == "lost");
  CHECK(closest_name("", {}).empty());
  CHECK(closest_name(std::string(100000, 'x'), {"", "x"}).empty());
  CHECK(closest_name("x", {std::string(100000, 'x')}).empty());
  CHECK(did_you_mean("", {}).empty());
  CHECK(did_you_mean(std::string(100000, 'x'), {"x"}, "none") == "none");
  CHECK(quoted_names({}).empty());
  CHECK(quoted_names({"a", "b"}, 0) == ", ...");
  CHECK(short_name("").empty());
  CHECK(short_name(std::string(100000, '\x80')).size() < 256);                         // no valid UTF-8
  CHECK(test::contains(test::error_text([] { check(false, ""); }), "please report"));  // documented: internal errors
}

TEST_CASE("misuse: dtypes") {
  REFUSED("77 is not a DType", checked_dtype(kNoDType));
  REFUSED("77 is not a DType", dtype_bits(kNoDType));
  REFUSED("77 is not a DType", size_bytes(kNoDType));
  REFUSED("77 is not a DType", size_bytes(kNoDType, 3));
  REFUSED("77 is not a DType", alignment_of(kNoDType));
  REFUSED("77 is not a DType", dtype_name(kNoDType));
  REFUSED("77 is not a DType", promote(kNoDType, DType::F32));
  REFUSED("77 is not a DType", promote(DType::F32, kNoDType));
  REFUSED("77 is not a DType", promote_weak_float(kNoDType));
  REFUSED("77 is not a DType", promote_weak_int(kNoDType));
  REFUSED("-1 is not a valid number of elements", size_bytes(DType::F32, -1));
  REFUSED("is not a valid number of elements", size_bytes(DType::F32, kHigh));
  REFUSED("is not a valid number of elements", size_bytes(DType::F32, kLow));
  CHECK(size_bytes(DType::C128, kMaxElements - 1) == 16 * ((std::size_t{1} << 60) - 1));
  CHECK(size_bytes(DType::I4, kMaxElements - 1) == std::size_t{1} << 59);
  CHECK_FALSE(parse_dtype("").has_value());
  CHECK_FALSE(parse_dtype("f32 ").has_value());
  CHECK_FALSE(parse_dtype(std::string(100000, 'f')).has_value());
}

TEST_CASE("misuse: block schemes") {
  const auto none = static_cast<QuantScheme>(99);
  CHECK(is_block_scheme(none));
  REFUSED("99", quant_scheme_name(none));
  REFUSED("99", block_layout(none));
  REFUSED("affine has no blocks", block_layout(QuantScheme::Affine));
  std::vector<std::byte> bytes(35);
  std::vector<float> numbers(32);
  REFUSED("35 bytes do not hold 32 elements", dequantize_blocks(QuantScheme::Q8_0, bytes, numbers));
  REFUSED("35 bytes do not hold 32 elements", quantize_blocks(QuantScheme::Q8_0, numbers, bytes));
  REFUSED("affine has no blocks", dequantize_blocks(QuantScheme::Affine, bytes, numbers));
  REFUSED("affine has no blocks", quantize_blocks(QuantScheme::Affine, numbers, bytes));
  REFUSED("35 bytes do not hold 32 elements", unpack_block(QuantScheme::Q8_0, bytes));
  REFUSED("35 bytes do not hold 32 elements", pack_block(QuantScheme::Q8_0, {}, bytes));
  REFUSED("affine has no blocks", unpack_block(QuantScheme::Affine, bytes));
  REFUSED("affine has no blocks", pack_block(QuantScheme::Affine, {}, bytes));
  REFUSED("0 bytes do not hold 256 elements", unpack_block(QuantScheme::Q4_K, {}));
  dequantize_blocks(QuantScheme::Q8_0, {}, {});
  CHECK(block_layout(QuantScheme::Q6_K).groups() == 16);
  CHECK_FALSE(block_layout(QuantScheme::Q6_K).has_mins());
  CHECK_FALSE(block_layout(QuantScheme::IQ1_M).plain());
  CHECK_FALSE(makes_blocks(none));
  CHECK_FALSE(makes_blocks(QuantScheme::Affine));
  REFUSED("blocks of mxfp4 can be decoded, but not encoded",
          quantize_blocks(QuantScheme::MXFP4, numbers, std::span(bytes).first(17)));
}

TEST_CASE("misuse: dimensions") {
  REFUSED("18446744073709551615 is too large", Dim(std::numeric_limits<std::uint64_t>::max()));
  REFUSED("is too large", Dim(std::numeric_limits<unsigned long long>::max()));
  CHECK(Dim(7U) == Dim(7LL));
  CHECK(Dim(short{7}) == Dim(std::size_t{7}));
  CHECK(Dim(std::uint8_t{7}) == Dim(7UL));
  CHECK(Dims{3U, 4LL, 5L, 6UL, 7ULL, std::int8_t{8}}.size() == 6);
  REFUSED("is not a symbol name", Dim::symbol(""));
  REFUSED("is not a symbol name", Dim::symbol("1x"));
  REFUSED("is not a symbol name", Dim::symbol("a b"));
  const Dim n = Dim::symbol("n");
  REFUSED("dimension n has no value", n.value());
  REFUSED("'n' has no value", n.evaluate({}));
  REFUSED("'n' has no bounds", n.range({}));
  CHECK((n + 1).bind({{"m", 4}}) == n + 1);
  REFUSED("overflow", Dim(kHigh) + Dim(1));  // operator+
  REFUSED("overflow", Dim(kLow) - Dim(1));   // operator-
  REFUSED("overflow", Dim(kHigh) * Dim(2));  // operator*
  REFUSED("overflow", (n * kHigh).bind({{"n", 2}}));
  REFUSED("overflow", (n * kHigh).evaluate({{"n", 2}}));
  REFUSED("the divisor must be positive", floordiv(n, 0));
  REFUSED("the divisor must be positive", mod(n, -1));
  REFUSED("the divisor must be positive", floordiv(n, n).is_static() ? floordiv(1, Dim(0)) : mod(1, Dim(0)));
  CHECK_FALSE(exact_div(n, 0).has_value());
  Dim nested = n;
  REFUSED("nests", [&] {
    for (int i = 0; i < 100; ++i) nested = min(max(nested, i % 2 ? n : n + 1), floordiv(n, 2));
    return nested;
  }());
  for (const char* text : {"", "(", "n+", "(n", "n)", "n n", "min(n)", "floordiv(n, 0)", "99999999999999999999", "()"})
    CHECK_MESSAGE(!parse_dim(text).has_value(), text);
  CHECK_FALSE(parse_dim(std::string(100000, '(')).has_value());
  CHECK(parse_dim("2*(n + 1)*(n - 1)") == 2 * n * n - 2);
  const Dim gone = [] {
    Dim a = Dim::symbol("a"), b = std::move(a);
    return a;  // NOLINT(bugprone-use-after-move)
  }();
  CHECK(gone.text() == "0");  // a moved-from dimension is valid, with some value
  CHECK(gone.symbols().empty());
  CHECK(gone == Dim(0));  // operator==
}

TEST_CASE("misuse: shapes") {
  REFUSED("77 is not a DType", Shape({2}, kNoDType));
  const Shape s({2, 3}, DType::F32), symbolic({Dim::symbol("n")}, DType::F32);
  REFUSED("axis 2 is outside rank 2", s.dim(2));
  REFUSED("axis -3 is outside rank 2", s.dim(-3));
  REFUSED("is outside rank 0", Shape().dim(0));
  REFUSED("dimension n has no value", symbolic.num_elements());
  REFUSED("dimension n has no value", symbolic.size_bytes());
  REFUSED("dimension n has no value", symbolic.static_dims());
  REFUSED("negative dimension", Shape({-1}, DType::F32).num_elements());
  REFUSED("overflows", Shape({kHigh, 2}, DType::F32).num_elements());
  REFUSED("overflows", Shape({kMaxElements}, DType::I4).size_bytes());
  REFUSED("overflow", Shape({kHigh, 2}, DType::F32).num_elements_dim());
  REFUSED("with_dim: axis 5", s.with_dim(5, 1));
  REFUSED("77 is not a DType", s.with_dtype(kNoDType));
  CHECK(symbolic.bind({{"m", 1}}) == symbolic);  // operator==
  CHECK(dims_text(Dims{}) == "[]");
  CHECK(dims_text(std::span<const std::int64_t>()) == "[]");
  REFUSED("what: axis", normalize_axis(kLow, 3, "what"));
  REFUSED("what: axis", normalize_axis(kHigh, 3, "what"));
  REFUSED("a scalar has no axes", normalize_axis(0, 0, "what"));
  CHECK_FALSE(broadcast_dims({2}, {3}).has_value());
  CHECK(broadcast_dims({}, {}).has_value());
  CHECK(row_major_strides({}).empty());
}

TEST_CASE("misuse: tensors") {
  const Shape three({3}, DType::F32), symbolic({Dim::symbol("n")}, DType::F32);
  for (const Shape& bad : {symbolic, Shape({-1}, DType::F32), Shape({kHigh, kHigh}, DType::F32)}) {
    CHECK_FALSE(test::error_text([&] { (void)Tensor::zeros(bad); }).empty());
    CHECK_FALSE(test::error_text([&] { (void)Tensor::uninitialized(bad); }).empty());
    CHECK_FALSE(test::error_text([&] { (void)Tensor::full(bad, 1); }).empty());
    CHECK_FALSE(test::error_text([&] { (void)Tensor::copy_of(nullptr, bad); }).empty());
    CHECK_FALSE(test::error_text([&] { (void)Tensor::borrowed(nullptr, bad, nullptr); }).empty());
  }
  // 2^62 bytes in all: these counts once wrapped to 0, and element 5 was outside the buffer.
  REFUSED("overflows", Tensor::zeros(Shape({kMaxElements}, DType::F32)));
  REFUSED("77 is not a DType", Tensor::scalar(kNoDType, 1));
  REFUSED("77 is not a DType", Tensor::scalar_i64(kNoDType, 1));
  REFUSED("null pointer", Tensor::copy_of(nullptr, three));
  REFUSED("null pointer", Tensor::borrowed(nullptr, three, nullptr));
  CHECK_FALSE(Tensor::borrowed(nullptr, Shape({0}, DType::F32), nullptr).empty());
  REFUSED("needs 4 values, got 2", Tensor::of<float>({4}, std::vector<float>{1, 2}));
  REFUSED("negative", Tensor::of<float>({-4}, std::vector<float>{1, 2}));

  Tensor buffer = Tensor::zeros(three), none;
  REFUSED("of a buffer of 12", Tensor::part_of(buffer, 4, three));
  REFUSED("of a buffer of 12", Tensor::part_of(buffer, ~std::size_t{0} - 3, three));  // the sum wraps to 8
  REFUSED("of a buffer of 0", Tensor::part_of(none, 0, Shape({0}, DType::F32)));

  // Byte offsets that are not aligned to elements.
  alignas(16) const std::byte bytes[32] = {};
  Tensor room = Tensor::zeros(Shape({40}, DType::U8));
  for (const DType d :
       {DType::I16, DType::F16, DType::I32, DType::F32, DType::C64, DType::F64, DType::I64, DType::C128}) {
    const Shape one({1}, d);
    const std::string wanted = concat_text("past a multiple of ", alignment_of(d));
    REFUSED(wanted, Tensor::borrowed(bytes + 1, one, nullptr));
    REFUSED(wanted, Tensor::part_of(room, 1, one));
    CHECK_FALSE(Tensor::borrowed(bytes + alignment_of(d), one, nullptr).empty());
    CHECK_FALSE(Tensor::part_of(room, alignment_of(d), one).empty());
    CHECK_FALSE(Tensor::copy_of(bytes + 1, one).empty());
    CHECK_FALSE(Tensor::borrowed(bytes + 1, Shape({0}, d), nullptr).empty());
  }
  for (const DType d : {DType::Bool, DType::U8, DType::F8E4M3, DType::I4})
    CHECK_FALSE(Tensor::borrowed(bytes + 1, Shape({2}, d), nullptr).empty());

  // Numbers out of range of an integer dtype.
  REFUSED("300 is not a value of u8, which holds 0 to 255", Tensor::scalar(DType::U8, 300));
  REFUSED("-1 is not a value of u64, which holds 0 to 18446744073709551615", Tensor::scalar(DType::U64, -1));
  REFUSED("2.5 is not a value of i32", Tensor::full(Shape({2}, DType::I32), 2.5));
  REFUSED("nan is not a value of i8", Tensor::scalar(DType::I8, std::numeric_limits<double>::quiet_NaN()));
  REFUSED("is not a value of i64", Tensor::scalar(DType::I64, 0x1p63));
  REFUSED("8 is not a value of i4, which holds -8 to 7", Tensor::scalar(DType::I4, 8));
  REFUSED("-1 is not a value of u4, which holds 0 to 15", Tensor::scalar_i64(DType::U4, -1));
  REFUSED("128 is not a value of i8, which holds -128 to 127", Tensor::scalar_i64(DType::I8, 128));
  CHECK(Tensor::scalar(DType::U8, 255).at_i64(0) == 255);
  CHECK(Tensor::scalar(DType::I64, -0x1p63).at_i64(0) == kLow);
  CHECK(Tensor::scalar(DType::I4, -8).at_i64(0) == -8);
  CHECK(Tensor::scalar(DType::Bool, 2.5).at_i64(0) == 1);
  CHECK(Tensor::scalar(DType::F16, 1e9).at(0) == std::numeric_limits<double>::infinity());

  Tensor t = Tensor::full(three, 2);
  for (const std::int64_t i : {std::int64_t{3}, std::int64_t{-1}, std::int64_t{100000000}, kHigh, kLow}) {
    REFUSED("which has 3 elements", t.at(i));
    REFUSED("which has 3 elements", t.at_i64(i));
    REFUSED("which has 3 elements", t.set(i, 1));
    REFUSED("which has 3 elements", t.set_i64(i, 1));
  }
  REFUSED("was read as f64", t.values<double>());
  REFUSED("was read as i32", t.mutable_values<std::int32_t>());
  REFUSED("axis 1", t.dim(1));
  REFUSED("cannot view", t.reshaped({2}));
  REFUSED("negative", t.reshaped({-3}));
  const std::pair<std::int64_t, std::int64_t> ranges[] = {{-1, 1},        {0, 4},        {4, 0},
                                                          {kHigh, kHigh}, {kLow, kHigh}, {0, kLow}};
  for (const auto& range : ranges) REFUSED("are out of range", t.rows(range.first, range.second));
  REFUSED("are out of range", Tensor::scalar(DType::F32, 1).rows(0, 0));
  REFUSED("77 is not a DType", t.cast(kNoDType));
  CHECK(t.text(0) == "[3] f32 {, ...}");
  CHECK(t.text(-5) == "[3] f32 {, ...}");
}

TEST_CASE("misuse: tensors that are empty or were moved from") {
  Tensor moved = Tensor::full(Shape({3}, DType::I32), 2);
  { const Tensor taken = std::move(moved); }
  Tensor assigned = Tensor::full(Shape({3}, DType::I32), 2), target;
  target = std::move(assigned);
  Tensor never;
  for (Tensor* t : {&moved, &assigned, &never}) {  // NOLINT(bugprone-use-after-move)
    CHECK(t->empty());
    CHECK_FALSE(t->owned());
    CHECK(t->num_elements() == 0);
    CHECK(t->size_bytes() == 0);
    CHECK(t->data() == nullptr);
    CHECK(t->view().data == nullptr);
    CHECK(t->rank() == 0);
    CHECK(t->dims().empty());
    CHECK(t->dtype() == DType::F32);
    CHECK(t->shape() == Shape());
    CHECK(t->to_f32().empty());
    CHECK(t->to_f64().empty());
    CHECK(t->values<float>().empty());
    CHECK(t->identical(Tensor()));
    CHECK(t->text() == "[] f32 {}");
    REFUSED("element 0 of an empty tensor", t->at(0));
    REFUSED("element 0 of an empty tensor", t->at_i64(0));
    REFUSED("element 0 of an empty tensor", t->set(0, 1));
    REFUSED("element 0 of an empty tensor", t->set_i64(0, 1));
    REFUSED("an empty tensor cannot be written", t->mutable_data());
    REFUSED("an empty tensor cannot be written", t->mutable_values<float>());
    REFUSED("cast of an empty tensor", t->cast(DType::F64));
    REFUSED("cannot view an empty tensor", t->reshaped({0}));
    REFUSED("are out of range", t->rows(0, 0));
    REFUSED("axis 0", t->dim(0));
  }
  const Tensor& itself = target;
  target = itself;  // operator= to itself keeps the value
  Tensor& same = target;
  target = std::move(same);
  CHECK(target.at(2) == 2);
}

TEST_CASE("misuse: element access by dtype") {
  const std::byte bytes[16]{};
  REFUSED("77 is not a DType", visit_dtype(kNoDType, [](auto) { return 0; }));
  CHECK(load_element<double>(bytes, kNoDType, 0) == 0);
  std::byte room[16]{};
  store_element(room, kNoDType, 0, 1.0);  // writes nothing
  CHECK(std::all_of(std::begin(room), std::end(room), [](std::byte b) { return b == std::byte{0}; }));
  CHECK(convert_element<std::int8_t>(std::numeric_limits<double>::infinity()) == 127);
  CHECK(convert_element<std::int8_t>(std::numeric_limits<double>::quiet_NaN()) == 0);
}
