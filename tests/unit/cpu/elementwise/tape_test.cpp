// The elementwise tape of every instruction set: each operation, broadcasts, types, immediates, chunks, errors.
#include <bit>
#include <string>

#include "rlx/error.h"
#include "tests/unit/cpu/kernel_test.h"

namespace rlx::cpu::test {
namespace {

constexpr float kTrue = 1.0F;

/// The reference of F32 operations with two or three operands, for one value. `known` is false for operations of other
/// tests.
float scalar_f32(TapeOp op, float a, float b, float c, bool& known) {
  known = true;
  const auto truth = [](bool v) { return v ? kTrue : 0.0F; };
  const bool nan = std::isnan(a) || std::isnan(b);
  switch (op) {
    case TapeOp::Copy: return a;
    case TapeOp::Neg: return -a;
    case TapeOp::Abs: return std::fabs(a);
    case TapeOp::Square: return a * a;
    case TapeOp::Relu: return std::isnan(a) ? a : a > 0 ? a : 0.0F;
    case TapeOp::Softsign: return std::isinf(a) ? std::copysign(1.0F, a) : a / (1.0F + std::fabs(a));
    case TapeOp::Elu: return a > 0 ? a : std::expm1(a);
    case TapeOp::HardSigmoid: return std::isnan(a) ? a : std::min(6.0F, std::max(0.0F, a + 3.0F)) / 6.0F;
    case TapeOp::HardSwish: return std::max(a, -3.0F) * (std::min(6.0F, std::max(0.0F, a + 3.0F)) / 6.0F);
    case TapeOp::Round: return std::nearbyint(a);
    case TapeOp::Floor: return std::floor(a);
    case TapeOp::Ceil: return std::ceil(a);
    case TapeOp::Sign: return std::isnan(a) || a == 0 ? a : a > 0 ? 1.0F : -1.0F;
    case TapeOp::Not: return truth(a == 0);
    case TapeOp::LogSigmoid:
      return static_cast<float>(a > -30 ? -std::log1p(std::exp(-static_cast<double>(a))) : static_cast<double>(a));
    case TapeOp::Add: return a + b;
    case TapeOp::Sub: return a - b;
    case TapeOp::Mul: return a * b;
    case TapeOp::Div: return a / b;
    case TapeOp::Max: return nan ? kNan : std::max(a, b);
    case TapeOp::Min: return nan ? kNan : std::min(a, b);
    case TapeOp::Mod: {
      const double r = std::fmod(static_cast<double>(a), static_cast<double>(b));
      return static_cast<float>(r != 0 && (r < 0) != (b < 0) ? r + static_cast<double>(b) : r);
    }
    case TapeOp::Rem: return static_cast<float>(std::fmod(static_cast<double>(a), static_cast<double>(b)));
    case TapeOp::Atan2: return std::atan2(a, b);
    case TapeOp::Trunc: return std::trunc(a);
    case TapeOp::And: return truth(a != 0 && b != 0);
    case TapeOp::Or: return truth(a != 0 || b != 0);
    case TapeOp::Xor: return truth((a != 0) != (b != 0));
    case TapeOp::Eq: return truth(a == b);
    case TapeOp::Ne: return truth(a != b);
    case TapeOp::Lt: return truth(a < b);
    case TapeOp::Le: return truth(a <= b);
    case TapeOp::Gt: return truth(a > b);
    case TapeOp::Ge: return truth(a >= b);
    case TapeOp::Where: return a != 0 ? b : c;
    default: known = false; return 0;
  }
}

std::int32_t scalar_i32(TapeOp op, std::int32_t a, std::int32_t b, bool& known) {
  known = true;
  const std::int64_t x = a, y = b;
  const auto wrap = [](std::int64_t v) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(v)); };
  float truth = 0;
  switch (op) {
    case TapeOp::NegI: return wrap(-x);
    case TapeOp::AbsI: return wrap(x < 0 ? -x : x);
    case TapeOp::SignI: return x > 0 ? 1 : x < 0 ? -1 : 0;
    case TapeOp::NotI: return ~a;
    case TapeOp::PopcountI: return std::popcount(static_cast<std::uint32_t>(a));
    case TapeOp::ClzI: return std::countl_zero(static_cast<std::uint32_t>(a));
    case TapeOp::AddI: return wrap(x + y);
    case TapeOp::SubI: return wrap(x - y);
    case TapeOp::MulI: return wrap(x * y);
    case TapeOp::DivI: return y == 0 ? 0 : wrap(x / y);
    case TapeOp::ModI: return y == 0 ? 0 : wrap(x % y != 0 && (x % y < 0) != (y < 0) ? x % y + y : x % y);
    case TapeOp::RemI: return y == 0 ? 0 : wrap(x % y);
    case TapeOp::MaxI: return std::max(a, b);
    case TapeOp::MinI: return std::min(a, b);
    case TapeOp::AndI: return a & b;
    case TapeOp::OrI: return a | b;
    case TapeOp::XorI: return a ^ b;
    case TapeOp::ShlI: return y < 0 || y > 31 ? 0 : wrap(static_cast<std::int64_t>(static_cast<std::uint64_t>(x) << y));
    case TapeOp::ShrI: return y < 0 || y > 31 ? (x < 0 ? -1 : 0) : a >> b;
    case TapeOp::EqI: truth = a == b ? 1.0F : 0.0F; break;
    case TapeOp::NeI: truth = a != b ? 1.0F : 0.0F; break;
    case TapeOp::LtI: truth = a < b ? 1.0F : 0.0F; break;
    case TapeOp::LeI: truth = a <= b ? 1.0F : 0.0F; break;
    case TapeOp::GtI: truth = a > b ? 1.0F : 0.0F; break;
    case TapeOp::GeI: truth = a >= b ? 1.0F : 0.0F; break;
    default: known = false; return 0;
  }
  std::int32_t bits = 0;
  std::memcpy(&bits, &truth, 4);
  return bits;
}

TEST_CASE("tape: every operation against one value at a time, registers and immediates") {
  const std::int64_t n = 600;
  const float specials[] = {kNan,  kInf, -kInf, 0.0F,   -0.0F, 1.0F, -1.0F, 2.5F,
                            -2.5F, 0.5F, 1.5F,  1e-40F, 3e38F, 7.0F, -3.0F};
  const std::int32_t ints[] = {0, 1, -1, 7, -7, 3, 31, 32, 33, 2147483647, -2147483647 - 1, 100000};
  int covered = 0;
  for (int op_index = 0; op_index < kNumTapeOps; ++op_index) {
    const auto op = static_cast<TapeOp>(op_index);
    const int arity = tape_op_arity(op);
    const bool integer = op >= TapeOp::NegI && op <= TapeOp::GeI;
    bool known = true;
    if (integer) {
      scalar_i32(op, 1, 1, known);
    } else {
      scalar_f32(op, 1, 1, 1, known);
    }
    if (!known) continue;
    ++covered;
    for (const KernelTable* t : tables()) {
      Buffer in[3] = {Buffer(n), Buffer(n), Buffer(n)};
      Buffer y(n);
      for (int k = 0; k < 3; ++k) {
        randomize(in[k], static_cast<unsigned>(k) + 1, -9, 9);
        for (std::int64_t i = 0; i < 225; ++i) {
          const std::int64_t pick = k == 0 ? i / 15 : k == 1 ? i % 15 : (i * 7) % 15;
          in[k][i] = specials[pick];
        }
        if (integer) {
          for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t pick = k == 0 ? i / 12 : k == 1 ? i % 12 : (i * 7) % 12;
            std::int32_t v = i < 144 ? ints[pick] : static_cast<std::int32_t>((i * 2654435761U) >> (8 + 6 * k)) - 1000;
            std::memcpy(&in[k][i], &v, 4);
          }
        }
      }
      for (int imm = -1; imm < arity; ++imm) {  // which operand is an immediate, -1 = none
        Tape tape;
        tape.rank = 1, tape.dims[0] = n, tape.num_inputs = arity;
        for (int k = 0; k < arity; ++k) tape.inputs[k] = {integer ? TapeType::I32 : TapeType::F32, {1}};
        TapeInstr instr;
        instr.op = op, instr.dst = 3, instr.a = 0, instr.b = 1, instr.c = 2;
        std::uint8_t* operands[] = {&instr.a, &instr.b, &instr.c};
        if (imm >= 0) *operands[imm] = kTapeImm;
        instr.imm = op == TapeOp::Elu ? 1.0F : 1.75F;
        instr.imm_i = 5;
        if (op == TapeOp::Elu && imm >= 0) continue;
        tape.instrs = &instr, tape.num_instrs = 1, tape.num_outputs = 1;
        tape.outputs[0] = {integer ? TapeType::I32 : TapeType::F32, 3};
        tape_prepare(tape);
        const void* inputs[] = {in[0].data(), in[1].data(), in[2].data()};
        void* outputs[] = {y.data()};
        t->tape_run(tape, inputs, outputs, 0, n);
        REQUIRE(y.intact());
        for (std::int64_t i = 0; i < n; ++i) {
          CAPTURE(isa_name(t->isa));
          CAPTURE(imm);
          CAPTURE(i);
          INFO(std::string(tape_op_name(op)));
          if (integer) {
            std::int32_t v[3], got;
            for (int k = 0; k < 3; ++k) {
              std::memcpy(&v[k], &in[k][i], 4);
              if (k == imm) v[k] = 5;
            }
            std::memcpy(&got, &y[i], 4);
            const std::int32_t want = scalar_i32(op, v[0], v[1], known);
            if (got != want) CHECK(got == want);
          } else {
            float v[3];
            for (int k = 0; k < 3; ++k) v[k] = k == imm ? 1.75F : in[k][i];
            const float want = scalar_f32(op, v[0], v[1], v[2], known);
            const bool exact_nan = std::isnan(want) && std::isnan(y[i]);
            const bool close = exact_nan || y[i] == want || ulp_error(y[i], static_cast<double>(want)) <= 4 ||
                               std::fabs(static_cast<double>(y[i]) - static_cast<double>(want)) < 1e-12;
            if (!close) {
              CAPTURE(v[0]);
              CAPTURE(v[1]);
              CHECK(y[i] == want);
            }
          }
        }
      }
    }
  }
  CHECK(covered == 60);  // the rest are in math_test.cpp and the conversions below
}

TEST_CASE("tape: broadcasts of every kind, chunks, several outputs") {
  for (const KernelTable* t : tables()) {
    for (const std::int64_t inner : {1, 3, 5, 40, 255, 256, 257, 600}) {
      const std::int64_t d[3] = {4, 3, inner};
      const std::int64_t n = d[0] * d[1] * d[2];
      Buffer full(n), row(inner), column(d[0] * d[1]), middle(d[1]), one(1, 0.75F), spread(2 * n), y(n), z(n);
      randomize(full, 1);
      randomize(row, 2);
      randomize(column, 3);
      randomize(middle, 4);
      randomize(spread, 5);
      Tape tape;
      tape.rank = 3;
      for (int i = 0; i < 3; ++i) tape.dims[i] = d[i];
      tape.num_inputs = 6;
      tape.inputs[0] = {TapeType::F32, {d[1] * inner, inner, 1}};
      tape.inputs[1] = {TapeType::F32, {0, 0, 1}};
      tape.inputs[2] = {TapeType::F32, {d[1], 1, 0}};
      tape.inputs[3] = {TapeType::F32, {0, 1, 0}};
      tape.inputs[4] = {TapeType::F32, {0, 0, 0}};
      tape.inputs[5] = {TapeType::F32, {2, 2 * d[0], 2 * d[0] * d[1]}};  // transposed, with gaps
      const TapeInstr instrs[] = {{TapeOp::Add, 6, 0, 1, 0, 0, 0},
                                  {TapeOp::Mul, 7, 6, 2, 0, 0, 0},
                                  {TapeOp::Sub, 8, 7, 3, 0, 0, 0},
                                  {TapeOp::Mul, 6, 8, 4, 0, 0, 0},
                                  {TapeOp::Add, 9, 6, 5, 0, 0, 0}};
      tape.instrs = instrs, tape.num_instrs = 5, tape.num_outputs = 2;
      tape.outputs[0] = {TapeType::F32, 9};
      tape.outputs[1] = {TapeType::F32, 7};
      tape_prepare(tape);
      CHECK(tape.num_elements == n);
      const void* inputs[] = {full.data(), row.data(), column.data(), middle.data(), one.data(), spread.data()};
      void* outputs[] = {y.data(), z.data()};
      for (std::int64_t at = (n - 1) / 512 * 512; at >= 0; at -= 512) t->tape_run(tape, inputs, outputs, at, at + 512);
      CHECK(y.intact());
      CHECK(z.intact());
      for (std::int64_t i = 0; i < d[0]; ++i) {
        for (std::int64_t j = 0; j < d[1]; ++j) {
          for (std::int64_t k = 0; k < inner; ++k) {
            const std::int64_t e = (i * d[1] + j) * inner + k;
            const float p = (full[e] + row[k]) * column[i * d[1] + j];
            const float want = (p - middle[j]) * 0.75F + spread[2 * i + 2 * d[0] * j + 2 * d[0] * d[1] * k];
            CHECK(z[e] == p);
            CHECK(std::fabs(y[e] - want) < 1e-6F);
          }
        }
      }
    }
  }
}

TEST_CASE("tape: storage types and conversions") {
  for (const KernelTable* t : tables()) {
    CAPTURE(isa_name(t->isa));
    // every bf16 and f16 value passes unchanged; a NaN stays a NaN
    for (const TapeType type : {TapeType::BF16, TapeType::F16}) {
      std::vector<std::uint16_t> in(65536), out(65536);
      Buffer values(65536);
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint16_t>(i);
      Tape tape;
      tape.rank = 1, tape.dims[0] = 65536, tape.num_inputs = 1, tape.inputs[0] = {type, {1}};
      tape.num_outputs = 2;
      tape.outputs[0] = {type, 0};
      tape.outputs[1] = {TapeType::F32, 0};
      tape_prepare(tape);
      const void* inputs[] = {in.data()};
      void* outputs[] = {out.data(), values.data()};
      t->tape_run(tape, inputs, outputs, 0, 65536);
      int wrong = 0;
      for (std::size_t i = 0; i < in.size(); ++i) {
        if (std::isnan(values[static_cast<std::int64_t>(i)])) {
          const unsigned exponent = type == TapeType::BF16 ? 0x7f80U : 0x7c00U;
          if ((out[i] & exponent) != exponent || (out[i] & ~(exponent | 0x8000U)) == 0) ++wrong;
        } else if (out[i] != in[i]) {
          ++wrong;
        }
      }
      CHECK(wrong == 0);
      CHECK(values[0x3c00] == (type == TapeType::F16 ? 1.0F : 0.0078125F));
      if (type == TapeType::F16) CHECK(values[1] == 0x1p-24F);
    }
    // rounding to nearest even, overflow
    const float xs[] = {1.0009765F,    1.00048828125F, 1.00146484375F, 65519.0F, 65520.0F,    -65520.0F,   2.98e-8F,
                        2.9802322e-8F, 8.9e-8F,        6.1e-5F,        kNan,     1.00390625F, 1.01171875F, 3.4e38F};
    const std::uint16_t f16[] = {0x3c01, 0x3c00, 0x3c02, 0x7bff, 0x7c00, 0xfc00, 0, 0, 1, 0x0400, 0x7e00};
    Buffer x(14);
    for (int i = 0; i < 14; ++i) x[i] = xs[i];
    std::uint16_t h[14], b[14];
    std::uint8_t u8[14], boolean[14];
    std::int8_t i8[14];
    Tape tape;
    tape.rank = 1, tape.dims[0] = 14, tape.num_inputs = 1, tape.inputs[0] = {TapeType::F32, {1}};
    tape.num_outputs = 4;
    tape.outputs[0] = {TapeType::F16, 0};
    tape.outputs[1] = {TapeType::BF16, 0};
    tape.outputs[2] = {TapeType::U8, 0};
    tape.outputs[3] = {TapeType::I8, 0};
    tape_prepare(tape);
    const void* inputs[] = {x.data()};
    void* outputs[] = {h, b, u8, i8};
    t->tape_run(tape, inputs, outputs, 0, 14);
    for (int i = 0; i < 10; ++i) {
      CAPTURE(i);
      CHECK(std::abs(static_cast<int>(h[i]) - static_cast<int>(f16[i])) <= (i == 9 ? 1 : 0));
    }
    CHECK((h[10] & 0x7fff) > 0x7c00);
    CHECK(b[11] == 0x3f80);  // 1 + 2^-8: a tie, to even
    CHECK(b[12] == 0x3f82);  // 1 + 3 * 2^-8: a tie, to even
    CHECK(b[13] == 0x7f80);
    CHECK((b[10] & 0x7fff) > 0x7f80);
    CHECK(u8[3] == 255);
    CHECK(u8[5] == 0);
    CHECK(u8[10] == 0);
    CHECK(i8[5] == -128);
    CHECK(i8[3] == 127);
    // Bool in and out, I32 and back
    const std::uint8_t bits[] = {0, 1, 255, 0};
    const float fs[] = {2.9F, -2.9F, 3e9F, kNan};
    std::int32_t ints[4], from_bool[4];
    Buffer back(4);
    Tape c;
    c.rank = 1, c.dims[0] = 4, c.num_inputs = 2;
    c.inputs[0] = {TapeType::Bool, {1}};
    c.inputs[1] = {TapeType::F32, {1}};
    const TapeInstr instrs[] = {{TapeOp::BoolToI32, 2, 0, 0, 0, 0, 0},
                                {TapeOp::F32ToI32, 3, 1, 0, 0, 0, 0},
                                {TapeOp::I32ToF32, 4, 3, 0, 0, 0, 0}};
    c.instrs = instrs, c.num_instrs = 3, c.num_outputs = 4;
    c.outputs[0] = {TapeType::I32, 2};
    c.outputs[1] = {TapeType::I32, 3};
    c.outputs[2] = {TapeType::F32, 4};
    c.outputs[3] = {TapeType::Bool, 0};
    tape_prepare(c);
    const void* ci[] = {bits, fs};
    void* co[] = {from_bool, ints, back.data(), boolean};
    t->tape_run(c, ci, co, 0, 4);
    CHECK((from_bool[0] == 0 && from_bool[1] == 1 && from_bool[2] == 1 && from_bool[3] == 0));
    CHECK((boolean[0] == 0 && boolean[1] == 1 && boolean[2] == 1));
    CHECK((ints[0] == 2 && ints[1] == -2 && ints[2] == 2147483647 && ints[3] == 0));
    CHECK(back[1] == -2.0F);
  }
}

TEST_CASE("tape: two steps joined give the bits of two instructions, over registers and immediates, in place too") {
  const std::int64_t n = 600;  // whole blocks and a rest
  const float specials[] = {kNan, kInf, -kInf, 0.0F, -0.0F, 1.0F, -1.0F, 0.1F, 1e-40F, 3e38F, 1e-38F};
  struct Step {
    TapeThen then;
    TapeOp op;
    bool from_left;  // c is the left operand
  };
  const Step steps[] = {{TapeThen::Add, TapeOp::Add, false},    {TapeThen::Sub, TapeOp::Sub, false},
                        {TapeThen::SubFrom, TapeOp::Sub, true}, {TapeThen::Mul, TapeOp::Mul, false},
                        {TapeThen::Div, TapeOp::Div, false},    {TapeThen::DivInto, TapeOp::Div, true}};
  for (const KernelTable* t : tables()) {
    CAPTURE(isa_name(t->isa));
    Buffer x[3] = {Buffer(n), Buffer(n), Buffer(n)};
    const auto fill = [&] {
      for (int k = 0; k < 3; ++k) {
        randomize(x[k], static_cast<unsigned>(k) + 1, -9, 9);
        for (std::int64_t i = 0; i < 400; ++i) x[k][i] = specials[(i / (k == 0 ? 1 : k == 1 ? 11 : 37)) % 11];
      }
    };
    for (const TapeOp first : {TapeOp::Add, TapeOp::Sub, TapeOp::Mul, TapeOp::Div})
      for (const Step& step : steps)
        for (const int imm : {-1, 0, 1})  // which operand of the first step is an immediate
          for (const bool imm_then : {false, true})
            for (const int over : {-1, 0, 1, 2}) {  // which input the result overwrites
              fill();
              TapeInstr both{
                  .op = first, .dst = 3, .a = 0, .b = 1, .c = 2, .imm = 0.3F, .then = step.then, .imm_then = -0.7F};
              if (imm >= 0) (imm == 0 ? both.a : both.b) = kTapeImm;
              if (imm_then) both.c = kTapeImm;
              TapeInstr apart[] = {both, {.op = step.op, .dst = 4, .a = 3, .b = both.c, .imm = -0.7F}};
              apart[0].then = TapeThen::None, apart[0].c = 0;
              if (step.from_left) std::swap(apart[1].a, apart[1].b);
              Tape tape;
              tape.rank = 1, tape.dims[0] = n, tape.num_inputs = 3, tape.num_outputs = 1;
              for (TapeInput& in : std::span(tape.inputs, 3)) in.strides[0] = 1;
              const void* inputs[] = {x[0].data(), x[1].data(), x[2].data()};
              Buffer want(n), got(n);
              tape.instrs = apart, tape.num_instrs = 2, tape.outputs[0].reg = 4;
              tape_prepare(tape);
              void* outputs[] = {want.data()};
              t->tape_run(tape, inputs, outputs, 0, n);
              tape.instrs = &both, tape.num_instrs = 1, tape.outputs[0].reg = 3;
              tape_prepare(tape);
              Buffer& out = over < 0 ? got : x[over];
              outputs[0] = out.data();
              t->tape_run(tape, inputs, outputs, 0, n);
              CHECK(out.intact());
              std::int64_t wrong = 0;
              for (std::int64_t i = 0; i < n; ++i)
                wrong += std::isnan(want[i]) ? !std::isnan(out[i]) : std::memcmp(&want[i], &out[i], 4) != 0;
              CHECK(wrong == 0);
            }
  }
}

TEST_CASE("tape: in place, large outputs past the caches, empty and scalar spaces") {
  for (const KernelTable* t : tables()) {
    for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1000}, std::int64_t{5} << 20}) {
      Buffer x(n), y(n);
      for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 1000);
      Tape tape;
      tape.rank = 1, tape.dims[0] = n, tape.num_inputs = 1, tape.inputs[0].strides[0] = 1;
      const TapeInstr instrs[] = {{TapeOp::Mul, 1, 0, kTapeImm, 0, 2.0F, 0}, {TapeOp::Add, 2, 1, 0, 0, 0, 0}};
      tape.instrs = instrs, tape.num_instrs = 2, tape.num_outputs = 1, tape.outputs[0].reg = 2;
      tape_prepare(tape);
      CHECK(tape.stream_outputs == (n > 1000000));
      const void* inputs[] = {x.data()};
      void* outputs[] = {y.data()};
      t->tape_run(tape, inputs, outputs, 0, n);
      bool same = true;
      for (std::int64_t i = 0; i < n; ++i) same = same && y[i] == static_cast<float>(i % 1000) * 3.0F;
      CHECK(same);
      CHECK(y.intact());
      outputs[0] = x.data();
      t->tape_run(tape, inputs, outputs, 0, n);
      CHECK((n == 0 || std::memcmp(x.data(), y.data(), static_cast<std::size_t>(n) * 4) == 0));
    }
  }
}

TEST_CASE("tape: results over inputs that later instructions read, and over those that none reads") {
  for (const KernelTable* t : tables()) {
    const std::int64_t n = 1000;  // whole blocks and a rest
    for (const bool read_later : {false, true}) {
      Buffer x(n), y(n), third(n);
      for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 100), y[i] = static_cast<float>(i % 7);
      // r2 = x + y; r3 = r2 * 2; r4 = r3 + x, or r3 + r2
      const TapeInstr instrs[] = {{TapeOp::Add, 2, 0, 1, 0, 0, 0},
                                  {TapeOp::Mul, 3, 2, kTapeImm, 0, 2.0F, 0},
                                  {TapeOp::Add, 4, 3, static_cast<std::uint8_t>(read_later ? 0 : 2), 0, 0, 0}};
      Tape tape;
      tape.rank = 1, tape.dims[0] = n, tape.num_inputs = 2, tape.num_outputs = 3;
      tape.inputs[0].strides[0] = tape.inputs[1].strides[0] = 1;
      for (int o = 0; o < 3; ++o) tape.outputs[o].reg = static_cast<std::uint8_t>(2 + o);
      tape.instrs = instrs, tape.num_instrs = 3;
      tape_prepare(tape);
      const void* inputs[] = {x.data(), y.data()};
      void* outputs[] = {x.data(), y.data(), third.data()};
      t->tape_run(tape, inputs, outputs, 0, n);
      bool same = true;
      for (std::int64_t i = 0; i < n; ++i) {
        const float a = static_cast<float>(i % 100), sum = a + static_cast<float>(i % 7);
        same = same && x[i] == sum && y[i] == 2 * sum && third[i] == 2 * sum + (read_later ? a : sum);
      }
      CHECK(same);
      CHECK(third.intact());
    }
  }
}

TEST_CASE("tape: a wrong program is refused with the instruction's place") {
  Tape tape;
  tape.rank = 1, tape.dims[0] = 4, tape.num_inputs = 1, tape.num_outputs = 1;
  TapeInstr instr{TapeOp::Add, 1, 0, 5, 0, 0, 0};
  tape.instrs = &instr, tape.num_instrs = 1;
  tape.outputs[0].reg = 1;
  CHECK_THROWS_WITH_AS(tape_prepare(tape), doctest::Contains("instruction 0 (add) reads register 5"), Error);
  instr = {TapeOp::Add, 0, 0, 0, 0, 0, 0};
  CHECK_THROWS_WITH_AS(tape_prepare(tape), doctest::Contains("writes register 0"), Error);
  instr = {TapeOp::Add, 1, kTapeImm, kTapeImm, 0, 0, 0};
  CHECK_THROWS_WITH_AS(tape_prepare(tape), doctest::Contains("two immediate"), Error);
  instr = {.op = TapeOp::Add, .dst = 1, .a = 0, .b = 0, .c = 7, .then = TapeThen::Mul};
  CHECK_THROWS_WITH_AS(tape_prepare(tape), doctest::Contains("reads register 7 in its second step"), Error);
  instr = {.op = TapeOp::Neg, .dst = 1, .a = 0, .b = 0, .c = 0, .then = TapeThen::Mul};
  CHECK_THROWS_WITH_AS(tape_prepare(tape), doctest::Contains("instruction 0 (neg) has a second step"), Error);
  instr = {TapeOp::Neg, 1, 0, 0, 0, 0, 0};
  tape.outputs[0].reg = 2;
  CHECK_THROWS_WITH_AS(tape_prepare(tape), doctest::Contains("output 0 stores register 2"), Error);
}

TEST_CASE("tape: many numbers divided by one are rounded as each division is") {
  const std::int64_t n = 256 * 40 - 13;
  std::vector<float> divisors{1.0F,     -1.0F,   3.0F, 0x1.fffffep0F, 0x1.000002p0F, 1e-3F,  0.1F, -0.001F,
                              0x1p-41F, 0x1p41F, 0.0F, kInf,          kNan,          1e-40F, 3e38F};
  std::mt19937 rng(5);
  const auto draw = [&rng](int exponents) {  // any mantissa, exponents around 0
    const int e = exponents == 0 ? 0 : static_cast<int>(rng() % static_cast<unsigned>(2 * exponents)) - exponents;
    return std::ldexp(1.0F + static_cast<float>(rng() % 0x800000U) / 0x1p23F, e) * (rng() % 2 == 0 ? 1.0F : -1.0F);
  };
  for (int i = 0; i < 60; ++i) divisors.push_back(draw(i % 3 == 0 ? 35 : 2));
  // Beside ordinary numbers: the ends of the range in which quotients use the reciprocal, and numbers outside of it.
  const float specials[] = {kNan,  kInf,     -kInf,     0.0F,    -0.0F,           1e-40F,        -1e-40F,
                            3e38F, 0x1p-78F, -0x1p-78F, 0x1p80F, 0x1.fffffep-79F, 0x1.fffffep79F};
  constexpr std::size_t kSpecials = std::size(specials);
  for (const KernelTable* t : tables()) {
    CAPTURE(isa_name(t->isa));
    std::int64_t wrong = 0;
    for (std::size_t which = 0; which < divisors.size(); ++which) {
      const float y = divisors[which];
      Buffer x(n), out(n, 7.0F);
      // Whole blocks of ordinary numbers, of numbers up to the ends of the range, and blocks with special values.
      for (std::int64_t i = 0; i < n; ++i) x[i] = draw(i < n / 2 ? 1 : i < n * 3 / 4 ? 76 : 120);
      for (std::int64_t i = n * 3 / 4; i < n; i += 37) x[i] = specials[static_cast<std::size_t>(i) % kSpecials];
      for (std::int64_t i = 11; i < n / 2; i += 130) x[i] = specials[static_cast<std::size_t>(i) % kSpecials];
      for (std::int64_t i = 3; i < n / 2; i += 300) x[i] = 0.0F;
      for (const bool immediate : {false, true}) {
        Tape tape;
        tape.rank = 1;
        tape.dims[0] = n;
        tape.num_inputs = 2;
        tape.inputs[0].strides[0] = 1;
        tape.num_outputs = 1;
        tape.outputs[0].reg = 2;
        TapeInstr divide;
        divide.op = TapeOp::Div, divide.dst = 2, divide.a = 0, divide.b = immediate ? kTapeImm : 1, divide.imm = y;
        tape.instrs = &divide;
        tape.num_instrs = 1;
        tape_prepare(tape);
        const void* inputs[] = {x.data(), &y};
        void* outputs[] = {out.data()};
        t->tape_run(tape, inputs, outputs, 0, n);
        CHECK(out.intact());
        for (std::int64_t i = 0; i < n; ++i) {
          const float want = x[i] / y, got = out[i];
          wrong += std::isnan(want) ? !std::isnan(got) : std::memcmp(&want, &got, 4) != 0;
        }
      }
    }
    CHECK(wrong == 0);
  }
}

}  // namespace
}  // namespace rlx::cpu::test
