// Runs straight-line code: one switch per instruction. Each case computes exactly what the kernel of the op computes
// for one element, so a loop has the same bits on either path.
#include "rlx/backends/cpu/control/loop_code.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace rlx::cpu {
namespace {

template <class E>
E get(const void* p) {
  E v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class E>
void put(void* p, E v) {
  std::memcpy(p, &v, sizeof v);
}
bool is_true(const void* p) { return get<std::uint8_t>(p) != 0; }
void put_flag(void* p, bool v) { put<std::uint8_t>(p, v ? 1 : 0); }

/// What E is computed in: unsigned for integers, so that they wrap.
template <class E>
using Modular = typename std::conditional_t<std::is_integral_v<E>, std::make_unsigned<E>, std::type_identity<E>>::type;
template <class E>
E added(E a, E b) {
  return static_cast<E>(static_cast<Modular<E>>(a) + static_cast<Modular<E>>(b));
}
template <class E>
E subtracted(E a, E b) {
  return static_cast<E>(static_cast<Modular<E>>(a) - static_cast<Modular<E>>(b));
}
template <class E>
E multiplied(E a, E b) {
  return static_cast<E>(static_cast<Modular<E>>(a) * static_cast<Modular<E>>(b));
}
template <class E>
E negated(E a) {
  if constexpr (std::is_integral_v<E>)
    return subtracted(E{0}, a);
  else
    return -a;  // also turns the sign of a zero and of NaN
}
/// As maxps and minps after a test for NaN: the second operand where they are equal.
template <class E>
E larger(E a, E b) {
  return a != a ? a : a > b ? a : b;
}
template <class E>
E smaller(E a, E b) {
  return a != a ? a : a < b ? a : b;
}

void move(void* to, const void* from, std::size_t n) {
  if (to != from) std::memmove(to, from, n);
}

/// y[k] = f(operands of element k).
template <class E, class F>
void each_of_one(const LoopInstr& i, F f) {
  using R = decltype(f(E{}));
  const auto* a = static_cast<const std::byte*>(i.a);
  auto* d = static_cast<std::byte*>(i.d);
  const std::size_t step = (i.once & 1U) != 0 ? 0 : sizeof(E);
  for (std::size_t k = 0; k < i.n; ++k, a += step, d += sizeof(R)) put<R>(d, f(get<E>(a)));
}
template <class E, class F>
void each_of_two(const LoopInstr& i, F f) {
  using R = decltype(f(E{}, E{}));
  const auto *a = static_cast<const std::byte*>(i.a), *b = static_cast<const std::byte*>(i.b);
  auto* d = static_cast<std::byte*>(i.d);
  const std::size_t step_a = (i.once & 1U) != 0 ? 0 : sizeof(E), step_b = (i.once & 2U) != 0 ? 0 : sizeof(E);
  for (std::size_t k = 0; k < i.n; ++k, a += step_a, b += step_b, d += sizeof(R)) put<R>(d, f(get<E>(a), get<E>(b)));
}
template <class E>
void choose_many(const LoopInstr& i) {
  const auto *a = static_cast<const std::byte*>(i.a), *b = static_cast<const std::byte*>(i.b),
             *c = static_cast<const std::byte*>(i.c);
  auto* d = static_cast<std::byte*>(i.d);
  const std::size_t step_a = (i.once & 1U) != 0 ? 0 : 1, step_b = (i.once & 2U) != 0 ? 0 : sizeof(E),
                    step_c = (i.once & 4U) != 0 ? 0 : sizeof(E);
  for (std::size_t k = 0; k < i.n; ++k, a += step_a, b += step_b, c += step_c, d += sizeof(E))
    put(d, get<E>(is_true(a) ? b : c));
}
/// Operand k of the instruction as `n` elements of `bytes` bytes.
const void* spread_operand(const LoopInstr& i, int k, const void* at, std::size_t bytes, std::byte* to) {
  if (!at || (i.once >> k & 1U) == 0) return at;
  for (std::size_t e = 0; e < i.n; ++e) std::memcpy(to + e * bytes, at, bytes);
  return to;
}
std::uint8_t flag(bool v) { return v ? 1 : 0; }

void run_many(const LoopInstr& i) {
  switch (i.inner) {
#define RLX_LOOP_CASES(T, E)                                                                                    \
  case LoopOp::Add##T: return each_of_two<E>(i, [](E a, E b) { return added(a, b); });                          \
  case LoopOp::Sub##T: return each_of_two<E>(i, [](E a, E b) { return subtracted(a, b); });                     \
  case LoopOp::Mul##T: return each_of_two<E>(i, [](E a, E b) { return multiplied(a, b); });                     \
  case LoopOp::Max##T: return each_of_two<E>(i, [](E a, E b) { return larger(a, b); });                         \
  case LoopOp::Min##T: return each_of_two<E>(i, [](E a, E b) { return smaller(a, b); });                        \
  case LoopOp::Neg##T: return each_of_one<E>(i, [](E a) { return negated(a); });                                \
  case LoopOp::Eq##T: return each_of_two<E>(i, [](E a, E b) { return flag(a == b); });                          \
  case LoopOp::Ne##T: return each_of_two<E>(i, [](E a, E b) { return flag(a != b); });                          \
  case LoopOp::Lt##T: return each_of_two<E>(i, [](E a, E b) { return flag(a < b); });                           \
  case LoopOp::Le##T: return each_of_two<E>(i, [](E a, E b) { return flag(a <= b); });                          \
  case LoopOp::To##T: return each_of_one<std::uint8_t>(i, [](std::uint8_t a) { return a != 0 ? E{1} : E{0}; }); \
  case LoopOp::True##T: return each_of_one<E>(i, [](E a) { return flag(a != E{0}); });
    RLX_LOOP_NUMBERS(RLX_LOOP_CASES)
#undef RLX_LOOP_CASES
    case LoopOp::DivF32: return each_of_two<float>(i, [](float a, float b) { return a / b; });
    case LoopOp::DivF64: return each_of_two<double>(i, [](double a, double b) { return a / b; });
    case LoopOp::SqrtF32: return each_of_one<float>(i, [](float a) { return std::sqrt(a); });
    case LoopOp::SqrtF64: return each_of_one<double>(i, [](double a) { return std::sqrt(a); });
    case LoopOp::AbsF32: return each_of_one<std::uint32_t>(i, [](std::uint32_t a) { return a & 0x7fffffffU; });
    case LoopOp::AbsF64: return each_of_one<std::uint64_t>(i, [](std::uint64_t a) { return a & 0x7fffffffffffffffU; });
    case LoopOp::RecipF32: return each_of_one<float>(i, [](float a) { return 1.0F / a; });
    case LoopOp::RecipF64: return each_of_one<double>(i, [](double a) { return 1.0 / a; });
    case LoopOp::AndI32: return each_of_two<std::uint32_t>(i, [](auto a, auto b) { return a & b; });
    case LoopOp::OrI32: return each_of_two<std::uint32_t>(i, [](auto a, auto b) { return a | b; });
    case LoopOp::XorI32: return each_of_two<std::uint32_t>(i, [](auto a, auto b) { return a ^ b; });
    case LoopOp::AndI64: return each_of_two<std::uint64_t>(i, [](auto a, auto b) { return a & b; });
    case LoopOp::OrI64: return each_of_two<std::uint64_t>(i, [](auto a, auto b) { return a | b; });
    case LoopOp::XorI64: return each_of_two<std::uint64_t>(i, [](auto a, auto b) { return a ^ b; });
    case LoopOp::AndB: return each_of_two<std::uint8_t>(i, [](auto a, auto b) { return flag(a != 0 && b != 0); });
    case LoopOp::OrB: return each_of_two<std::uint8_t>(i, [](auto a, auto b) { return flag(a != 0 || b != 0); });
    case LoopOp::XorB: return each_of_two<std::uint8_t>(i, [](auto a, auto b) { return flag((a != 0) != (b != 0)); });
    case LoopOp::EqB: return each_of_two<std::uint8_t>(i, [](auto a, auto b) { return flag((a != 0) == (b != 0)); });
    case LoopOp::NotB: return each_of_one<std::uint8_t>(i, [](auto a) { return flag(a == 0); });
    case LoopOp::F32ToF64: return each_of_one<float>(i, [](float a) { return static_cast<double>(a); });
    case LoopOp::F64ToF32: return each_of_one<double>(i, [](double a) { return static_cast<float>(a); });
    case LoopOp::I32ToF32: return each_of_one<std::int32_t>(i, [](auto a) { return static_cast<float>(a); });
    case LoopOp::I32ToF64: return each_of_one<std::int32_t>(i, [](auto a) { return static_cast<double>(a); });
    case LoopOp::I64ToF32: return each_of_one<std::int64_t>(i, [](auto a) { return static_cast<float>(a); });
    case LoopOp::I64ToF64: return each_of_one<std::int64_t>(i, [](auto a) { return static_cast<double>(a); });
    case LoopOp::I32ToI64: return each_of_one<std::int32_t>(i, [](auto a) { return static_cast<std::int64_t>(a); });
    case LoopOp::I64ToI32: return each_of_one<std::uint64_t>(i, [](auto a) { return static_cast<std::uint32_t>(a); });
    case LoopOp::Where1: return choose_many<std::uint8_t>(i);
    case LoopOp::Where4: return choose_many<std::uint32_t>(i);
    case LoopOp::Where8: return choose_many<std::uint64_t>(i);
    case LoopOp::Tape: {
      const auto& call = *static_cast<const LoopTapeCall*>(i.call);
      return call.run(call.instr, {{i.a, i.b, i.c}, i.once, static_cast<int>(i.n)}, i.d);
    }
    case LoopOp::Typed: {
      alignas(64) std::byte spread[2][kMostMany * 8];
      const auto& call = *static_cast<const LoopTypedCall*>(i.call);
      const auto bytes = static_cast<std::size_t>(call.bytes);
      return call.run(spread_operand(i, 0, i.a, bytes, spread[0]), spread_operand(i, 1, i.b, bytes, spread[1]), nullptr,
                      i.d, static_cast<std::int64_t>(i.n));
    }
    case LoopOp::Wide: {
      alignas(64) std::byte spread[2][kMostMany * 8];
      const auto& call = *static_cast<const LoopWideCall*>(i.call);
      return call.run(static_cast<const double*>(spread_operand(i, 0, i.a, 8, spread[0])),
                      static_cast<const double*>(spread_operand(i, 1, i.b, 8, spread[1])), nullptr,
                      static_cast<double*>(i.d), static_cast<int>(i.n), call.args);
    }
    default: break;  // the others are not written for several elements
  }
}

}  // namespace

std::byte* LoopIndexing::block() const {
  std::byte* at = table;
  for (int k = 0; k < count; ++k) {
    const Axis& axis = axes[k];
    std::int64_t i = axis.wide ? get<std::int64_t>(axis.index) : get<std::int32_t>(axis.index);
    if (clamp)
      i = std::clamp<std::int64_t>(i, 0, axis.extent - 1);
    else if (i < 0 || i >= axis.extent)
      return nullptr;
    at += i * axis.stride;
  }
  return at;
}

std::int64_t run_loop_code(std::span<const LoopInstr> code, std::int64_t t, std::int64_t step,
                           std::int64_t iterations) {
  const LoopInstr* const begin = code.data();
  const LoopInstr* const end = begin + code.size();
  for (std::int64_t done = 0; done < iterations; ++done, t += step) {
    const auto row = static_cast<std::size_t>(t);
    for (const LoopInstr* i = begin; i != end; ++i) {
      switch (i->op) {
#define RLX_LOOP_CASES(T, E)                                                        \
  case LoopOp::Add##T: put<E>(i->d, added(get<E>(i->a), get<E>(i->b))); break;      \
  case LoopOp::Sub##T: put<E>(i->d, subtracted(get<E>(i->a), get<E>(i->b))); break; \
  case LoopOp::Mul##T: put<E>(i->d, multiplied(get<E>(i->a), get<E>(i->b))); break; \
  case LoopOp::Max##T: put<E>(i->d, larger(get<E>(i->a), get<E>(i->b))); break;     \
  case LoopOp::Min##T: put<E>(i->d, smaller(get<E>(i->a), get<E>(i->b))); break;    \
  case LoopOp::Neg##T: put<E>(i->d, negated(get<E>(i->a))); break;                  \
  case LoopOp::Eq##T: put_flag(i->d, get<E>(i->a) == get<E>(i->b)); break;          \
  case LoopOp::Ne##T: put_flag(i->d, get<E>(i->a) != get<E>(i->b)); break;          \
  case LoopOp::Lt##T: put_flag(i->d, get<E>(i->a) < get<E>(i->b)); break;           \
  case LoopOp::Le##T: put_flag(i->d, get<E>(i->a) <= get<E>(i->b)); break;          \
  case LoopOp::To##T: put<E>(i->d, is_true(i->a) ? E{1} : E{0}); break;             \
  case LoopOp::True##T: put_flag(i->d, get<E>(i->a) != E{0}); break;
        RLX_LOOP_NUMBERS(RLX_LOOP_CASES)
#undef RLX_LOOP_CASES
        case LoopOp::DivF32: put(i->d, get<float>(i->a) / get<float>(i->b)); break;
        case LoopOp::DivF64: put(i->d, get<double>(i->a) / get<double>(i->b)); break;
        case LoopOp::SqrtF32: put(i->d, std::sqrt(get<float>(i->a))); break;
        case LoopOp::SqrtF64: put(i->d, std::sqrt(get<double>(i->a))); break;
        case LoopOp::AbsF32: put(i->d, get<std::uint32_t>(i->a) & 0x7fffffffU); break;
        case LoopOp::AbsF64: put(i->d, get<std::uint64_t>(i->a) & 0x7fffffffffffffffU); break;
        case LoopOp::RecipF32: put(i->d, 1.0F / get<float>(i->a)); break;
        case LoopOp::RecipF64: put(i->d, 1.0 / get<double>(i->a)); break;
        case LoopOp::AndI32: put(i->d, get<std::uint32_t>(i->a) & get<std::uint32_t>(i->b)); break;
        case LoopOp::OrI32: put(i->d, get<std::uint32_t>(i->a) | get<std::uint32_t>(i->b)); break;
        case LoopOp::XorI32: put(i->d, get<std::uint32_t>(i->a) ^ get<std::uint32_t>(i->b)); break;
        case LoopOp::AndI64: put(i->d, get<std::uint64_t>(i->a) & get<std::uint64_t>(i->b)); break;
        case LoopOp::OrI64: put(i->d, get<std::uint64_t>(i->a) | get<std::uint64_t>(i->b)); break;
        case LoopOp::XorI64: put(i->d, get<std::uint64_t>(i->a) ^ get<std::uint64_t>(i->b)); break;
        case LoopOp::AndB: put_flag(i->d, is_true(i->a) && is_true(i->b)); break;
        case LoopOp::OrB: put_flag(i->d, is_true(i->a) || is_true(i->b)); break;
        case LoopOp::XorB: put_flag(i->d, is_true(i->a) != is_true(i->b)); break;
        case LoopOp::EqB: put_flag(i->d, is_true(i->a) == is_true(i->b)); break;
        case LoopOp::NotB: put_flag(i->d, !is_true(i->a)); break;
        case LoopOp::F32ToF64: put(i->d, static_cast<double>(get<float>(i->a))); break;
        case LoopOp::F64ToF32: put(i->d, static_cast<float>(get<double>(i->a))); break;
        case LoopOp::I32ToF32: put(i->d, static_cast<float>(get<std::int32_t>(i->a))); break;
        case LoopOp::I32ToF64: put(i->d, static_cast<double>(get<std::int32_t>(i->a))); break;
        case LoopOp::I64ToF32: put(i->d, static_cast<float>(get<std::int64_t>(i->a))); break;
        case LoopOp::I64ToF64: put(i->d, static_cast<double>(get<std::int64_t>(i->a))); break;
        case LoopOp::I32ToI64: put<std::int64_t>(i->d, get<std::int32_t>(i->a)); break;
        case LoopOp::I64ToI32: put(i->d, static_cast<std::uint32_t>(get<std::uint64_t>(i->a))); break;
        case LoopOp::Where1: put(i->d, get<std::uint8_t>(is_true(i->a) ? i->b : i->c)); break;
        case LoopOp::Where4: put(i->d, get<std::uint32_t>(is_true(i->a) ? i->b : i->c)); break;
        case LoopOp::Where8: put(i->d, get<std::uint64_t>(is_true(i->a) ? i->b : i->c)); break;
        case LoopOp::Copy4: put(i->d, get<std::uint32_t>(i->a)); break;
        case LoopOp::Copy8: put(i->d, get<std::uint64_t>(i->a)); break;
        case LoopOp::CopyBytes: move(i->d, i->a, i->n); break;
        case LoopOp::LoadRow4: put(i->d, get<std::uint32_t>(static_cast<const std::byte*>(i->a) + row * 4)); break;
        case LoopOp::LoadRow8: put(i->d, get<std::uint64_t>(static_cast<const std::byte*>(i->a) + row * 8)); break;
        case LoopOp::LoadRowBytes: std::memcpy(i->d, static_cast<const std::byte*>(i->a) + row * i->n, i->n); break;
        case LoopOp::StoreRow4: put(static_cast<std::byte*>(i->d) + row * 4, get<std::uint32_t>(i->a)); break;
        case LoopOp::StoreRow8: put(static_cast<std::byte*>(i->d) + row * 8, get<std::uint64_t>(i->a)); break;
        case LoopOp::StoreRowBytes: std::memcpy(static_cast<std::byte*>(i->d) + row * i->n, i->a, i->n); break;
        case LoopOp::LeaveUnless:
          if (!is_true(i->a)) return done;
          break;
        case LoopOp::Tape: {
          const auto& call = *static_cast<const LoopTapeCall*>(i->call);
          call.run(call.instr, {{i->a, i->b, i->c}, 0, 1}, i->d);
          break;
        }
        case LoopOp::Typed: static_cast<const LoopTypedCall*>(i->call)->run(i->a, i->b, i->c, i->d, 1); break;
        case LoopOp::Wide: {
          const auto& call = *static_cast<const LoopWideCall*>(i->call);
          call.run(static_cast<const double*>(i->a), static_cast<const double*>(i->b), nullptr,
                   static_cast<double*>(i->d), 1, call.args);
          break;
        }
        case LoopOp::Take: {
          const auto& from = *static_cast<const LoopIndexing*>(i->call);
          const std::byte* block = from.block();
          if (!block) block = from.fill;
          i->n == 4 ? put(i->d, get<std::uint32_t>(block)) : static_cast<void>(std::memcpy(i->d, block, i->n));
          break;
        }
        case LoopOp::Put: {
          if (std::byte* block = static_cast<const LoopIndexing*>(i->call)->block())
            i->n == 4 ? put(block, get<std::uint32_t>(i->a)) : static_cast<void>(std::memcpy(block, i->a, i->n));
          break;
        }
        case LoopOp::Many: run_many(*i); break;
        case LoopOp::Kernel: {
          const auto& call = *static_cast<const LoopKernelCall*>(i->call);
          for (std::int64_t chunk = 0; chunk < call.chunks; ++chunk) call.run(call.ctx, chunk);
          break;
        }
      }
    }
  }
  return iterations;
}

}  // namespace rlx::cpu
