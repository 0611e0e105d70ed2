// Sample: one token from each row of logits, drawn with Gumbel noise. Composite.
#include <limits>

#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/random.h"
#include "rlx/ir/ops/reduce.h"
#include "rlx/ops/rule_helpers.h"

namespace rlx {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct SampleRules {
  static Result<Shapes> infer(const InferContext& c) {
    const Shape& logits = c.input("logits");
    if (logits.rank() != 2 || !is_float(logits.dtype())) return c.error("logits must be float [B, V], not ", logits);
    if (c.negative(logits.dim(1) - 1)) return c.error("logits ", logits, " have no tokens to sample from");
    const Dims rows{logits.dim(0)};
    for (const char* name : {"temperature", "top_k", "top_p", "min_p"}) {
      if (!c.has(name)) continue;
      const Shape& s = c.input(name);
      const bool is_k = std::string_view(name) == "top_k";
      if (is_k ? s.dtype() != DType::I32 : !is_float(s.dtype()))
        return c.dtype_error(name, " must be ", is_k ? "i32" : "float", ", not ", s);
      if (s.rank() != 0 && s.dims() != rows) return c.error(name, " must be [] or ", dims_text(rows), ", not ", s);
    }
    const Shape& key = c.input("key");
    if (key.dtype() != DType::U32 || key.dims() != Dims{logits.dim(0), Dim(2)})
      return c.error("key must be u32 ", dims_text(Dims{logits.dim(0), Dim(2)}), ", one for each row, not ", key);
    if (c.has("mask_bits")) {
      const Shape& mask = c.input("mask_bits");
      const Dims words{logits.dim(0), floordiv(logits.dim(1) + 31, Dim(32))};
      if (mask.dtype() != DType::U32 || mask.dims() != words)
        return c.error("mask_bits must be u32 ", dims_text(words), ", a bit for each token, not ", mask);
    }
    const DType t = logits.dtype() == DType::F64 ? DType::F64 : DType::F32;
    return make_shapes(Shape(rows, DType::I32), Shape(rows, t));
  }
  static void decompose(DecomposeContext& c) {
    Graph& g = c.graph();
    const DType t = c.result_shape(1).dtype();
    const Dim rows = c.input("logits").dim(0), tokens = c.input("logits").dim(1);
    const Dims all{rows, tokens}, column{rows, Dim(1)};
    // A setting as [1] or [B, 1], which broadcasts with rows.
    const auto setting = [&](const char* name, DType as) {
      const Expr e = g.cast(c.input(name), as);
      return e.rank() == 0 ? e : g.reshape(e, column);
    };
    Expr logits = g.cast(c.input("logits"), t);
    if (c.has("mask_bits")) {
      const Expr word = g.expand(c.input("mask_bits"), c.input("mask_bits").shape().dims());
      const DType at = count_dtype(g, {{rows}, {tokens}});
      const Expr token = g.expand(positions(g, tokens, 1, 2, at), all),
                 row = g.expand(positions(g, rows, 0, 2, at), all);
      const Expr words = g.add(ops::Gather{{0, 1}}, {word, row, g.shr(token, 5)});
      const Expr bit = g.bit_and(g.shr(words, g.cast(g.bit_and(token, 31), DType::U32)), g.scalar(1, DType::U32));
      logits = g.where(g.ne(bit, g.scalar(0, DType::U32)), logits, -kInf);
    }
    // Tokens sorted by logit; of equal logits the first comes first.
    const Expr ids = g.iota(Shape(all, DType::I32), 1);
    const Expr noise = gumbel(g, c.input("key"), tokens, t);
    const Expr sorted = g.add(ops::Sort{1, true}, {logits, ids, noise});
    const Expr order = sorted.result(1), luck = sorted.result(2);
    const Expr rank = g.iota(Shape({1, tokens}, DType::I32), 1);
    const Expr best = g.narrow(sorted, 1, 0, 1);
    const Expr any = g.ne(best, -kInf);
    const Expr temperature = setting("temperature", t), greedy = g.le(temperature, 0);
    const Expr top = g.where(any, best, 0);
    const Expr scaled = (sorted - top) / g.where(greedy, 1, temperature);
    // The filters. Each works on the tokens that the previous one kept. The most likely token always stays.
    const Expr first = g.eq(rank, 0);
    const Expr top_k = setting("top_k", DType::I32);
    Expr kept = g.bit_or(g.bit_or(g.le(top_k, 0), g.lt(rank, top_k)), first);
    const Expr p = g.softmax(g.where(kept, scaled, -kInf), 1);
    const Expr top_p = setting("top_p", t);
    const Expr before = g.cumsum(p, 1, true);
    kept = g.bit_and(kept, g.bit_or(g.bit_or(g.ge(top_p, 1), g.lt(before, top_p)), first));
    if (c.has("min_p")) {
      const Expr enough = g.ge(p, setting("min_p", t) * g.narrow(p, 1, 0, 1));
      kept = g.bit_and(kept, g.bit_or(enough, first));
    }
    const Expr possible = g.bit_and(kept, g.ne(sorted, -kInf));
    const Expr drawn = g.arg_max(g.where(possible, scaled + luck, -kInf), 1, true);
    const Expr at = g.where(greedy, g.scalar(0, DType::I32), drawn);
    const Expr row = positions(g, rows, 0, 2, count_dtype(g, {{rows}}));
    const auto picked = [&](Expr from) {  // values [B, V] at the drawn position: [B]
      return g.reshape(g.add(ops::Gather{{0, 1}}, {from, row, g.expand(at, column)}), {rows});
    };
    const Expr some = g.reshape(any, {rows});
    // The softmax of the tokens that the mask keeps; a row without such tokens has none.
    const Expr log_p = g.log_softmax(g.where(any, sorted, 0), 1);
    c.set_result(0, g.where(some, picked(order), g.scalar(-1, DType::I32)));
    c.set_result(1, g.where(some, picked(log_p), -kInf));
  }
  // -log(-log(u)) for u in [tiny, 1), the noise of jax.random.gumbel: [B, V].
  static Expr gumbel(Graph& g, Expr key, const Dim& tokens, DType t) {
    const bool wide = t == DType::F64;
    const Expr bits = g.add(ops::RngBits{{tokens}, wide ? DType::U64 : DType::U32}, {key});
    const Expr whole = g.shr(bits, g.scalar(wide ? 12 : 9, bits.dtype()));
    const double tiny = wide ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
    const Expr u = g.max(g.cast(whole, t) * (wide ? 0x1p-52 : 0x1p-23), tiny);
    return -g.log(-g.log(u));
  }
  static constexpr NoRule vjp = none("a sampled token has no derivative; use log_softmax for its probability");
  static constexpr NoRule jvp = vjp;
  // The rows of all batch members are concatenated.
  static void batch(BatchContext& c) {
    Graph& g = c.graph();
    const Dim rows = c.batch_size() * c.result_shape().dim(0);
    std::vector<Value> operands;
    for (int i = 0; i < c.num_inputs(); ++i) {
      if (c.rank(i) == 0 && !c.is_batched(i)) {
        operands.push_back(c.input(i));
        continue;
      }
      Expr e = c.lifted(i);
      if (c.rank(i) == 0) e = g.expand(g.reshape(e, {c.batch_size(), 1}), {c.batch_size(), c.result_shape().dim(0)});
      Dims dims(e.shape().dims().begin() + 1, e.shape().dims().end());
      dims[0] = rows;
      operands.push_back(g.reshape(e, dims));
    }
    const Expr first = g.add(c.box(), std::move(operands));
    for (int r = 0; r < 2; ++r)
      c.set_result(r,
                   g.reshape(first.result(static_cast<std::uint32_t>(r)), {c.batch_size(), c.result_shape().dim(0)}));
  }
  static Cost cost(const CostContext& c) {
    const double n = static_cast<double>(c.inputs[0].num_elements());
    return c.with_flops(n * (100 + std::log2(std::max(2.0, static_cast<double>(c.inputs[0].dim(1).value())))));
  }
  static constexpr AttrField attrs[] = {field<&ops::Sample::present>("present")};
};

}  // namespace

constinit const OpDef ops::Sample::def{
    .kind = kind,
    .name = "sample",
    .what = "A token sampled from each row of logits, after mask, temperature, top-k, top-p and min-p.",
    .inputs = inputs("logits", "temperature", "top_k", "top_p", "key", maybe("min_p"), maybe("mask_bits"))
                  .masked_by<&ops::Sample::present>(),
    .attrs = SampleRules::attrs,
    .level = Level::Mir,
    .leaf = LeafKind::None,
    .elementwise = ElementwiseKind::No,
    .view = ViewKind::None,
    .precision = PrecisionCategory::Stated,
    .infer = SampleRules::infer,
    .decompose = SampleRules::decompose,
    .vjp = SampleRules::vjp,
    .jvp = SampleRules::jvp,
    .batch = SampleRules::batch,
    .reference = by_decomposition,
    .cost = SampleRules::cost};

}  // namespace rlx
