// Misuse of the builder: every function with empty, dead and foreign values, and with invalid axes, sizes and kinds.
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "rlx/compiler/mesh.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/blocks.h"
#include "rlx/ir/ops/indexing.h"
#include "rlx/ir/ops/linalg.h"
#include "rlx/ir/ops/quantize.h"
#include "rlx/ir/ops/rope.h"
#include "tests/unit/api/misuse.h"

using namespace rlx;

namespace {
using rlx::test::kHigh;
using rlx::test::kLow;
const Shape kMatrix({2, 2}, DType::F32);

struct Call {
  const char* name;
  std::function<Expr(Graph&, Expr)> run;
};
#define UNARY(fn)                                  \
  Call {                                           \
#fn, [](Graph & g, Expr x) { return g.fn(x); } \
  }
#define UNARY_OF(Kind, call, text, params) UNARY(call),
#define BOTH(fn)                                                 \
  Call{#fn, [](Graph& g, Expr x) { return g.fn(1, x); }}, Call { \
#fn, [](Graph & g, Expr x) { return g.fn(x, 1); }            \
  }
#define WITH(fn, ...)                                           \
  Call {                                                        \
#fn, [](Graph & g, Expr x) { return g.fn(x, __VA_ARGS__); } \
  }

void refuse_values(const std::vector<Call>& calls) {
  Graph other("other");
  const Expr foreign = other.input("q", kMatrix), dead = [] {
    Graph gone;
    return gone.input("d", kMatrix);
  }();
  for (const Call& call : calls) {
    CAPTURE(call.name);
    Graph g("g");
    (void)g.input("x", kMatrix);
    REFUSED("an empty Expr", call.run(g, Expr()));
    REFUSED("after its graph was moved, compiled or destroyed", call.run(g, dead));
    REFUSED("belongs to graph 'other'", call.run(g, foreign));
    CHECK(g.outputs().empty());
  }
}
}  // namespace

TEST_CASE("misuse: values given to elementwise builders") {
  refuse_values({
      RLX_FOR_EACH_FUNCTION(UNARY_OF) UNARY(ln),
      UNARY(stop_gradient),
      BOTH(add),
      BOTH(sub),
      BOTH(mul),
      BOTH(div),
      BOTH(max),
      BOTH(min),
      BOTH(pow),
      BOTH(mod),
      BOTH(atan2),
      BOTH(bit_and),
      BOTH(bit_or),
      BOTH(bit_xor),
      BOTH(shl),
      BOTH(shr),
      BOTH(rem),
      BOTH(hypot),
      BOTH(logaddexp),
      BOTH(igamma),
      BOTH(igammac),
      BOTH(igamma_grad_a),
      BOTH(eq),
      BOTH(ne),
      BOTH(lt),
      BOTH(le),
      BOTH(gt),
      BOTH(ge),
      Call{"activation", [](Graph& g, Expr x) { return g.activation(ActivationKind::Relu, x); }},
      Call{"binary", [](Graph& g, Expr x) { return g.binary(BinaryKind::Add, 1, x); }},
      Call{"compare", [](Graph& g, Expr x) { return g.compare(CompareKind::Eq, x, 1); }},
      Call{"where", [](Graph& g, Expr x) { return g.where(1, 2, x); }},
      WITH(where, 1, 2),
      WITH(cast, DType::F64),
      WITH(bitcast, DType::I32),
      WITH(clamp, 0, 1),
      Call{"clamp", [](Graph& g, Expr x) { return g.clamp(1, 0, x); }},
  });
}

TEST_CASE("misuse: values given to other builders") {
  refuse_values({
      WITH(reshape, Dims{4}),
      WITH(transpose, {1, 0}),
      UNARY(t),
      WITH(expand, Dims{2, 2}),
      WITH(slice, Dims{0, 0}, Dims{1, 1}),
      WITH(narrow, 0, 0, 1),
      WITH(pad, {0, 0}, {1, 1}),
      WITH(reverse, {0}),
      WITH(unsqueeze, 0),
      WITH(squeeze, 0),
      WITH(flatten, 0, 0),
      WITH(index, {Index(0)}),
      WITH(dim_size, 0),
      WITH(gather, 0),
      WITH(scatter_add, 0, 1),
      Call{"gather, several axes", [](Graph& g, Expr x) { return g.gather(x, ExprList(x), ops::Gather{}); }},
      Call{"scatter", [](Graph& g, Expr x) { return g.scatter(ScatterKind::Set, x, 0, 1); }},
      Call{"scatter, several axes", [](Graph& g, Expr x) { return g.scatter(x, ExprList(x), x, ops::Scatter{}); }},
      WITH(take, 0, 0),
      WITH(take_along_axis, 0, 0),
      WITH(put_along_axis, 0, 1, 0),
      WITH(gather_nd, 0),
      WITH(scatter_nd, 0, 1),
      UNARY(sort),
      Call{"sort, values", [](Graph& g, Expr x) { return g.sort(x, ExprList(x))[1]; }},
      UNARY(argsort),
      WITH(grouped_dot, 1, 0),
      WITH(grouped_dot_contract, 1, 0, 2),
      WITH(rng_bits, Dims{2}),
      UNARY(rng_split),
      WITH(rng_fold_in, 1),
      WITH(rng_uniform, Dims{2}),
      WITH(rng_normal, Dims{2}),
      WITH(rng_bernoulli, 0.5, Dims{2}),
      Call{"sample", [](Graph& g, Expr x) { return g.sample(x, x, {}).token; }},
      WITH(dynamic_slice, 0, Dims{1, 1}),
      WITH(dynamic_update_slice, 1, 0),
      WITH(arg_max, 0),
      WITH(arg_min, 0),
      UNARY(sum),
      UNARY(mean),
      UNARY(reduce_max),
      UNARY(reduce_min),
      UNARY(reduce_prod),
      WITH(cumsum, 0),
      WITH(cumprod, 0),
      WITH(cummax, 0),
      WITH(cummin, 0),
      UNARY(softmax),
      UNARY(sm),
      UNARY(log_softmax),
      BOTH(matmul),
      BOTH(mm),
      WITH(layer_norm, 1, 1),
      WITH(rms_norm, 1, 1),
      WITH(linear, 1),
      WITH(linear_fused, 1, 1),
      WITH(swiglu, 1, 1, 1),
      WITH(residual_rms_norm, 1, 1, 1),
      WITH(residual_layer_norm, 1, 1, 1),
      Call{"concat", [](Graph& g, Expr x) { return g.concat({x}, 0); }},
      Call{"pad",
           [](Graph& g, Expr x) {
             return g.pad(g.expr(NodeId{0}), {0, 0}, {1, 1}, x);
           }},
      Call{"top_k", [](Graph& g, Expr x) { return g.top_k(x, 1).values; }},
      Call{"reduce", [](Graph& g, Expr x) { return g.reduce(ReduceKind::Sum, x, {0}); }},
      Call{"cumulative", [](Graph& g, Expr x) { return g.cumulative(CumulativeKind::Sum, x, 0); }},
      Call{"dot_general", [](Graph& g, Expr x) { return g.dot_general(x, x, ops::DotGeneral{}); }},
      Call{"attention", [](Graph& g, Expr x) { return g.attention(x, x, x, ops::Attention{}); }},
      Call{"attention", [](Graph& g, Expr x) { return g.attention(x, x, x, ops::Attention{}, {.kv_len = x}); }},
      Call{"paged_attention",
           [](Graph& g, Expr x) { return g.paged_attention(x, x, x, x, x, x, ops::PagedAttention{}); }},
      Call{"rope", [](Graph& g, Expr x) { return g.rope(x, x, x, ops::Rope{}); }},
      Call{"rope", [](Graph& g, Expr x) { return g.rope(x, x, x, x, ops::Rope{}); }},
      Call{"shared_linear_pair", [](Graph& g, Expr x) { return g.shared_linear_pair(x, x, x).first; }},
      Call{"encoder_block", [](Graph& g, Expr x) { return g.encoder_block(ops::EncoderBlock{}, {x}); }},
      Call{"llama_decoder_block",
           [](Graph& g, Expr x) { return g.llama_decoder_block(ops::LlamaDecoderBlock{}, {x}); }},
  });
}

TEST_CASE("misuse: builders with scalars alone, no operands, or kinds that are none") {
  Graph g("g");
  const Expr x = g.input("x", kMatrix);
  REFUSED("no operands", g.concat({}, 0));
  REFUSED("takes (", g.encoder_block(ops::EncoderBlock{}, {}));
  REFUSED("takes (", g.llama_decoder_block(ops::LlamaDecoderBlock{}, {}));
  REFUSED("out of range", g.activation(static_cast<ActivationKind>(200), x));
  CHECK_FALSE(test::error_text([&] { (void)g.binary(static_cast<BinaryKind>(200), x, x); }).empty());
  CHECK_FALSE(test::error_text([&] { (void)g.compare(static_cast<CompareKind>(200), x, x); }).empty());
  REFUSED("out of range", g.reduce(static_cast<ReduceKind>(200), x, {}));
  REFUSED("out of range", g.cumulative(static_cast<CumulativeKind>(200), x, 0));
  ops::Attention wild;
  wild.mask = static_cast<MaskKind>(200);
  CHECK_FALSE(test::error_text([&] { (void)g.attention(x, x, x, wild); }).empty());
  REFUSED("out of range", g.param("p", kMatrix, static_cast<ParamMode>(200)));
  REFUSED("dtype", g.cast(x, static_cast<DType>(77)));
  REFUSED("77 is not a DType", g.scalar(1, static_cast<DType>(77)));
  REFUSED("already has an input, param or state 'x'", g.input("x", kMatrix));
  REFUSED("already has an input, param or state 'x'", g.param("x", kMatrix));
  REFUSED("already has an input, param or state 'x'", g.state("x", Tensor::zeros(kMatrix)));
  CHECK_FALSE(test::error_text([&] { (void)g.constant(Tensor()); }).empty());
  CHECK_FALSE(test::error_text([&] { (void)g.state("s", Tensor()); }).empty());
  CHECK_FALSE(test::error_text([&] { (void)g.input("n", Shape({-1}, DType::F32)); }).empty());
  REFUSED("a scalar has no columns", g.matmul(1, 2));
  REFUSED("inferred [2, 2] f32, declared [3] f32", DeclaredShape({3}, DType::F32).check(x));
  REFUSED("an empty Expr", DeclaredShape({3}, DType::F32).check(Expr()));
  REFUSED("declared [3] f32", g.softmax(x, 0, Shape({3}, DType::F32)));
}

TEST_CASE("misuse: builders with axes and sizes that no tensor has") {
  for (const std::int64_t far : {std::int64_t{2}, std::int64_t{-3}, std::int64_t{64}, kHigh, kLow}) {
    CAPTURE(far);
    const Dim wide = far;
    Graph g("g");
    const Expr x = g.input("x", kMatrix), i = g.input("i", Shape({1}, DType::I32));
    auto refused = [&](const char* name, auto call) {
      CAPTURE(name);
      const std::string text = test::error_text(call);
      CHECK_FALSE(text.empty());
      CHECK_FALSE(test::contains(text, "please report"));
    };
    refused("transpose", [&] { (void)g.transpose(x, {far, 0}); });
    refused("reshape", [&] { (void)g.reshape(x, {wide, 7}); });
    refused("expand", [&] { (void)g.expand(x, {far == 2 ? Dim(3) : wide}); });
    refused("slice", [&] { (void)g.slice(x, {0, 0}, {far == 2 ? Dim(3) : wide, 1}); });
    refused("slice strides", [&] { (void)g.slice(x, {0, 0}, {2, 2}, {0, 1}); });
    refused("slice of another rank", [&] { (void)g.slice(x, {0}, {2}); });
    refused("narrow", [&] { (void)g.narrow(x, far, 0, 1); });
    refused("narrow range", [&] { (void)g.narrow(x, 0, 1, wide); });
    refused("concat", [&] { (void)g.concat({x, x}, far); });
    refused("pad", [&] { (void)g.pad(x, {far}, {far}); });
    refused("pad below nothing", [&] { (void)g.pad(x, {-3, 0}, {0, 0}); });
    refused("reverse", [&] { (void)g.reverse(x, {far}); });
    refused("iota", [&] { (void)g.iota(kMatrix, far); });
    refused("unsqueeze", [&] { (void)g.unsqueeze(x, far == 2 ? 3 : far == -3 ? -4 : far); });
    refused("squeeze", [&] { (void)g.squeeze(x, far); });
    refused("flatten", [&] { (void)g.flatten(x, far); });
    refused("flatten", [&] { (void)g.flatten(x, 0, far); });
    refused("index", [&] { (void)x[far]; });
    refused("dim_size", [&] { (void)g.dim_size(x, far); });
    refused("gather", [&] { (void)g.gather(x, i, far); });
    refused("scatter_add", [&] { (void)g.scatter_add(x, i, x, far); });
    refused("gather", [&] { (void)g.gather(x, {i, i}, ops::Gather{{0, far}}); });
    refused("scatter", [&] { (void)g.scatter(ScatterKind::Max, x, i, x, far); });
    refused("scatter", [&] { (void)g.scatter(x, {i, i}, x, ops::Scatter{ScatterKind::Set, {far, 0}}); });
    refused("take", [&] { (void)g.take(x, i, far); });
    refused("take_along_axis", [&] { (void)g.take_along_axis(x, i, far); });
    refused("put_along_axis", [&] { (void)g.put_along_axis(x, i, x, far); });
    refused("gather_nd", [&] { (void)g.gather_nd(x, i, far); });
    refused("sort", [&] { (void)g.sort(x, far); });
    refused("argsort", [&] { (void)g.argsort(x, far); });
    refused("dynamic_slice", [&] { (void)g.dynamic_slice(x, i, {far == 2 ? Dim(3) : wide, 1}); });
    refused("dynamic_update_slice", [&] {
      (void)g.dynamic_update_slice(x, g.input("u", Shape({3, 3}, DType::F32)), i);
    });
    refused("top_k", [&] { (void)g.top_k(x, far == 2 ? 3 : far); });
    refused("arg_max", [&] { (void)g.arg_max(x, far); });
    refused("arg_min", [&] { (void)g.arg_min(x, far); });
    refused("reduce", [&] { (void)g.reduce(ReduceKind::Sum, x, {far}); });
    refused("sum", [&] { (void)g.sum(x, {0, 0}); });
    refused("cumulative", [&] { (void)g.cumulative(CumulativeKind::Max, x, far); });
    refused("softmax", [&] { (void)g.softmax(x, far); });
    refused("log_softmax", [&] { (void)g.log_softmax(x, far); });
    refused("layer_norm", [&] { (void)g.layer_norm(x, 1, 1, 1e-5, {far}); });
    refused("rms_norm", [&] { (void)g.rms_norm(x, 1, 1, 1e-5, {far}); });
    refused("matmul", [&] { (void)g.matmul(x, g.input("m", Shape({3, 3}, DType::F32))); });
    refused("dot_general", [&] {
      ops::DotGeneral dims;
      dims.lhs_contract = dims.rhs_contract = {far};
      (void)g.dot_general(x, x, dims);
    });
    refused("attention", [&] {
      ops::Attention op;
      op.num_heads = op.kv_heads = far == 2 ? 0 : far;
      (void)g.attention(x, x, x, op);
    });
    refused("rope", [&] { (void)g.rope(x, x, x, ops::Rope{}); });
    CHECK(g.outputs().empty());
  }
}

TEST_CASE("misuse: builders of branches, loops and calls") {
  using L = const ExprList&;
  const BodyFn same = [](Graph&, L in) { return in; };
  const ScanFn step = [](Graph&, L c, L) { return LoopStep(c); };
  const WhileFn trip = [](Graph&, L c) { return LoopStep(c); };
  const ConditionFn test = [](Graph& b, L c) { return b.gt(b.sum(c[0]), 0); };
  const auto flag = [](Graph& g) { return g.constant(Tensor::scalar_i64(DType::Bool, 1)); };
  refuse_values({
      {"cond, pred", [&](Graph& g, Expr x) { return g.cond(x, ExprList{}, same, same)[0]; }},
      {"cond", [&](Graph& g, Expr x) { return g.cond(flag(g), x, same, same)[0]; }},
      {"cond_ragged", [&](Graph& g, Expr x) { return g.cond_ragged(flag(g), x, same, same)[0]; }},
      {"scan, init", [&](Graph& g, Expr x) { return g.scan(x, {}, step, {.length = Dim(2)}).carries[0]; }},
      {"scan, xs", [&](Graph& g, Expr x) { return g.scan({}, x, step).ys[0]; }},
      {"while_loop", [&](Graph& g, Expr x) { return g.while_loop(x, test, trip).carries[0]; }},
      {"call", [&](Graph& g, Expr x) { return g.call("f", x, same)[0]; }},
      {"checkpoint", [&](Graph& g, Expr x) { return g.checkpoint(x, same)[0]; }},
      {"custom_fn", [&](Graph& g, Expr x) { return g.custom_fn(x, {same})[0]; }},
      {"optimization_barrier", [&](Graph& g, Expr x) { return g.optimization_barrier(x)[0]; }},
      {"captured", [&](Graph& g, Expr x) { return g.call("f", {}, [&](Graph& b, L) { return b.sin(x); })[0]; }},
      {"returned", [&](Graph& g, Expr x) { return g.call("f", {}, [&](Graph&, L) { return ExprList(x); })[0]; }},
  });
  Graph g("g");
  const Expr x = g.input("x", kMatrix), one = g.scalar(1.0F);
  REFUSED("function is empty", g.cond(flag(g), x, BodyFn(), same));
  REFUSED("function is empty", g.cond(flag(g), BranchFn(), BranchFn()));
  REFUSED("function is empty", g.cond_ragged(flag(g), x, same, BodyFn()));
  REFUSED("function is empty", g.scan(x, x, ScanFn()));
  REFUSED("function is empty", g.while_loop(x, ConditionFn(), trip));
  REFUSED("function is empty", g.while_loop(x, test, WhileFn()));
  REFUSED("function is empty", g.call("f", x, BodyFn()));
  REFUSED("function is empty", g.checkpoint(x, BodyFn()));
  REFUSED("function is empty", g.custom_fn(x, CustomFn()));
  REFUSED("use if of C++", g.cond(true, x, same, same));
  REFUSED("a scalar, which has no rows", g.scan(x, one, step));
  REFUSED("returns no value", g.call("f", x, [](Graph&, L) { return ExprList{}; }));
  REFUSED("takes (x...)", g.optimization_barrier({}));
  REFUSED("length must not be negative, got -1", g.scan(x, {}, step, {.length = Dim(-1)}));
  REFUSED("max_iterations (attribute max_trips) must not be negative, got -1",
          g.while_loop(x, test, trip, {.max_iterations = -1}));
  REFUSED("'save' is out of range", g.checkpoint(x, same, static_cast<CallSave>(7)));
  REFUSED("an empty Expr", g.scan(x, x, [](Graph&, L, L) { return LoopStep(Expr()); }));
  REFUSED("must have the length 3", g.scan(x, x, step, {.length = Dim(3)}));
}

TEST_CASE("misuse: extents that are values") {
  const auto flag = [](Graph& g) { return g.constant(Tensor::zeros(Shape({2}, DType::Bool))); };
  const auto one = [](Graph& g) { return g.constant(Tensor::scalar_i64(DType::I64, 1)); };
  refuse_values({
      {"value_dim", [&](Graph& g, Expr x) { return g.iota(Shape({g.value_dim(x, 4)}, DType::I64), 0); }},
      {"first, x", [&](Graph& g, Expr x) { return g.first(x, one(g)); }},
      {"compress", [&](Graph& g, Expr x) { return g.compress(x, flag(g)); }},
      {"nonzero", [&](Graph& g, Expr x) { return g.nonzero(x); }},
  });
  Graph g("g");
  const Expr x = g.input("x", kMatrix);
  REFUSED("3 is not in the valid range [0, 2]", g.first(x, 3));
  REFUSED("an extent must be an integer scalar", g.first(x, x));
  REFUSED("axis", g.first(x, 1, 2));
  REFUSED("axis", g.compress(x, flag(g), -3));
  REFUSED("one Bool for each row", g.compress(x, x));
  REFUSED("is not in the valid range", g.value_dim(-1, 4));
  REFUSED("an extent must be an integer scalar", g.value_dim(g.scalar(1.0F), 4));
  REFUSED("is a scalar", g.nonzero(g.scalar(1.0F)));
}

TEST_CASE("misuse: indices, groups and random numbers") {
  Graph g;
  const Expr x = g.input("x", Shape({2, 3}, DType::F32)), i = g.input("i", Shape({2}, DType::I32)),
             key = g.input("key", Shape({2}, DType::U32));
  REFUSED("2 axes, but 1 index tensors", g.gather(x, {i}, ops::Gather{{0, 1}}));
  REFUSED("an axis is named twice", g.gather(x, {i, i}, ops::Gather{{0, -2}}));
  REFUSED("do not broadcast", g.gather(x, {i, g.input("j", Shape({3}, DType::I32))}, ops::Gather{{0, 1}}));
  REFUSED("updates", g.scatter(x, {i, i}, x, ops::Scatter{ScatterKind::Set, {0, 1}}));
  REFUSED("indices must be i32 or i64", g.take(x, x, 0));
  REFUSED("must have the rank of x", g.take_along_axis(x, i, 0));
  REFUSED("are longer than x [2, 3] f32", g.take_along_axis(x, g.input("far", Shape({1, 4}, DType::I32)), 0));
  REFUSED("must have the rank of x", g.put_along_axis(x, i, x, 0));
  REFUSED("must index 1 to 2 axes", g.gather_nd(x, g.input("three", Shape({5, 3}, DType::I32))));
  REFUSED("differ in batch axis 0", g.gather_nd(x, g.input("five", Shape({5, 1}, DType::I32)), 1));
  REFUSED("must index 1 to 2 axes", g.scatter_nd(x, g.scalar(0, DType::I32), x));
  REFUSED("ids must be i32", g.grouped_dot(x, g.input("w", Shape({4, 3, 2}, DType::F32)), x));
  REFUSED("groups must not be negative, got -2", g.grouped_dot_contract(x, x, i, -2));
  REFUSED("not i8", g.rng_bits(key, {3}, DType::I8));
  REFUSED("the key must be u32", g.rng_split(x));
  REFUSED("data must be an integer", g.rng_fold_in(key, x));
  REFUSED("the range [1, 0) is empty", g.rng_uniform(key, {3}, DType::F32, 1, 0));
  REFUSED("draws floats, not i32", g.rng_uniform(key, {3}, DType::I32));
  REFUSED("draws floats, not u8", g.rng_normal(key, {3}, DType::U8));
  REFUSED("1.5 is not in [0, 1]", g.rng_bernoulli(key, 1.5, {3}));
  REFUSED("one for each row", g.sample(x, key, {}));
  REFUSED("cannot compute f32 of f32 and i32", g.dot_general(x, i, ops::DotGeneral{{0}, {0}, {}, {}, DType::F32}));
  REFUSED("cannot compute i32 of f32", g.dot_general(x, x, ops::DotGeneral{{0}, {0}, {}, {}, DType::I32}));
}

TEST_CASE("misuse: builders of collectives") {
  refuse_values({
      {"all_reduce", [](Graph& g, Expr x) { return g.all_reduce(x, ReduceKind::Sum, "data", 1); }},
      {"all_reduce, several",
       [](Graph& g, Expr x) { return g.all_reduce_each(ExprList(x), ReduceKind::Sum, "data", 1)[0]; }},
      {"all_gather", [](Graph& g, Expr x) { return g.all_gather(x, 0, "data", 1); }},
      {"reduce_scatter", [](Graph& g, Expr x) { return g.reduce_scatter(x, ReduceKind::Sum, 0, "data", 1); }},
      {"all_to_all", [](Graph& g, Expr x) { return g.all_to_all(x, 0, 1, "data", 1); }},
      {"permute",
       [](Graph& g, Expr x) {
         return g.permute(x, {{0, 0}}, "data", 1);
       }},
  });
  Graph g;
  const Expr x = g.input("x", Shape({4, 6}, DType::F32)), flags = g.input("flags", Shape({2}, DType::Bool));
  REFUSED("mesh_axes is \"\"", g.axis_index("", 1));
  REFUSED("mesh_axes is \"a,\"", g.all_reduce(x, ReduceKind::Sum, "a,", 1));
  REFUSED("number of ranks must be at least 1, got 0", g.all_reduce(x, ReduceKind::Sum, "a", 0));
  REFUSED("cannot reduce bool", g.all_reduce(flags, ReduceKind::Sum, "a", 1));
  REFUSED("takes (x...)", g.all_reduce_each(ExprList{}, ReduceKind::Sum, "a", 1));
  REFUSED("x must be a value of a graph", g.all_reduce(1.0, ReduceKind::Sum, "a", 2));
  REFUSED("all_gather: axis 2", g.all_gather(x, 2, "a", 2));
  REFUSED("fn must be sum or mean, got max", g.reduce_scatter(x, ReduceKind::Max, 0, "a", 2));
  REFUSED("must be a multiple of 4 ranks", g.reduce_scatter(x, ReduceKind::Sum, 1, "a", 4));
  REFUSED("must be a multiple of 5 ranks", g.all_to_all(x, 0, 1, "a", 5));
  REFUSED("pairs has rank 2", g.permute(x, {{0, 2}}, "a", 2));
  REFUSED("rank 1 is a target twice", g.permute(x, {{0, 1}, {1, 1}}, "a", 2));
  CHECK(g.all_gather(x, -1, "a,b", 4).shape() == Shape({4, 24}, DType::F32));
  CHECK(g.reduce_scatter(x, ReduceKind::Mean, 0, "a", 2).shape() == Shape({2, 6}, DType::F32));
  CHECK(g.all_to_all(x, 1, 0, "a", 3).shape() == Shape({12, 2}, DType::F32));
  REFUSED("takes 4 ranks, but the program is compiled without a mesh", check_mesh(g, {}, "cpu", false));
  REFUSED("two axes called 'a'", check_mesh(g, {{{"a", 2}, {"a", 2}}}, "cpu", false));
  REFUSED("mesh axis 'a' has 0 ranks", check_mesh(g, {{{"a", 0}}}, "cpu", false));
  REFUSED("over 'b', which is not an axis of the mesh", check_mesh(g, {{{"a", 2}}}, "cpu", true));
  REFUSED("is built for 4 ranks, but the mesh has 6 ranks there", check_mesh(g, {{{"a", 2}, {"b", 3}}}, "cpu", true));
  REFUSED("cpu has no communicator", check_mesh(g, {{{"a", 2}, {"b", 2}}}, "cpu", false));
}

TEST_CASE("misuse: quantised values") {
  Graph g, other;
  const Expr x = g.input("x", Shape({2, 32}, DType::F32)), s = g.input("s", Shape({}, DType::F32)),
             q = g.input("q", Shape({2, 32}, DType::I8)), b = g.input("b", Shape({2, 34}, DType::U8)),
             foreign = other.input("x", Shape({2, 32}, DType::F32));
  ops::Quantize far;
  far.axis = 2;
  REFUSED("axis 2", g.quantize(x, s, far));
  REFUSED("belongs to graph", g.quantize(foreign, s));
  REFUSED("an empty Expr", g.quantize(x, Expr()));
  REFUSED("x must be float", g.quantize(q, s));
  REFUSED("zero_point must have the dtype of the quantized values", g.quantize(x, s, {}, s));
  REFUSED("can be encoded only on the host", g.quantize(x, QuantScheme::Q6_K));
  REFUSED("affine quantization needs a scale", g.quantize(x, QuantScheme::Affine));
  REFUSED("x must be float", g.quantize(b, QuantScheme::Q8_0));
  ops::Dequantize behind;
  behind.axis = -3;
  REFUSED("axis -3", g.dequantize(q, s, behind));
  REFUSED("codes must be integers", g.dequantize(x, s));
  REFUSED("global_scale needs a scale", g.dequantize(q, std::nullopt, {}, std::nullopt, s));
  REFUSED("needs an axis", g.dequantize(q, s, ops::Dequantize{QuantScheme::Affine, {}, 4, {}, DType::F32, {}}));
  REFUSED("codes of q8_0 must be u8", g.dequantize(q, QuantScheme::Q8_0));
  REFUSED("must be u8", g.dequantize(s, QuantScheme::Q8_0));
  REFUSED("needs 18 bytes for each 32", g.dequantize(b, QuantScheme::Q4_0));
  REFUSED("99", g.dequantize(b, static_cast<QuantScheme>(99)));
  REFUSED("the result must be float", g.dequantize(b, QuantScheme::Q8_0, DType::I8));
  REFUSED("x must be float", g.dynamic_quantize(q));
  REFUSED("got f32", g.dynamic_quantize(x, ops::DynamicQuantize{QuantScheme::Affine, {}, 0, DType::F32, true}));
  REFUSED("exclude the operand 'scale'", g.fake_quantize(x, {}, s));
  REFUSED("axis 7", g.fake_quantize(x, ops::FakeQuantize{8, 7}));
  REFUSED("bits must be in [2, 8]", g.fake_quantize(x, ops::FakeQuantize{1}));
  REFUSED("matmul", g.dequant_matmul(x, q, s));
  REFUSED("the quantized values [N, row bytes]", g.dequant_matmul(s, b, QuantScheme::Q8_0));
  REFUSED("codes must be integers", g.dequant_matmul(x, x, s));
}
