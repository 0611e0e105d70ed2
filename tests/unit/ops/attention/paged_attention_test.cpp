// PagedAttention against Attention over contiguous caches: pages in any order, requests of several lengths, tokens of
// no request, draft trees; by the reference rules and on the cpu.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "rlx/ir/ops/attention.h"
#include "rlx/runtime/session.h"
#include "tests/support/error_text.h"
#include "tests/support/run_op.h"
#include "tests/support/values.h"

using namespace rlx;
using namespace rlx::test;

namespace {

constexpr std::int64_t kPages = 7, kPage = 3, kHeads = 4, kKvHeads = 2, kDepth = 2;

ops::PagedAttention paged(MaskKind mask) {
  ops::PagedAttention op;
  op.num_heads = kHeads, op.kv_heads = kKvHeads, op.head_dim = kDepth, op.mask = mask;
  return op;
}

// Three requests in nine tokens; the last two tokens belong to none. Pages are in any order, and one is shared.
struct Requests {
  std::vector<std::int32_t> kv_len{7, 3, 4}, q_start{0, 4, 5, 7};
  std::vector<std::int32_t> table{5, 0, 2, 3, -1, 99, 5, 6, 1};  // [3, 3]; entries beyond kv_len may be invalid
  std::int64_t tokens = 9;
  Tensor q = sequence({9, kHeads, kDepth}), k = sequence({kPages, kPage, kKvHeads, kDepth}, 0.8, 0.1),
         v = sequence({kPages, kPage, kKvHeads, kDepth}, -0.5, 0.3);

  std::vector<Tensor> operands() const { return {q, k, v, ints({3, 3}, table), ints({3}, kv_len), ints({4}, q_start)}; }
  // The keys or values of request b as [1, kv_len, KV, D], and its queries as [1, n, H, D].
  Tensor gathered(const Tensor& pool, std::size_t b) const {
    Tensor out = Tensor::zeros(Shape({1, kv_len[b], kKvHeads, kDepth}, DType::F64));
    for (std::int64_t j = 0; j < kv_len[b]; ++j)
      for (std::int64_t e = 0; e < kKvHeads * kDepth; ++e)
        out.set(
            j * kKvHeads * kDepth + e,
            pool.at((table[b * 3 + static_cast<std::size_t>(j / kPage)] * kPage + j % kPage) * kKvHeads * kDepth + e));
    return out;
  }
  Tensor queries(std::size_t b) const {
    const std::int64_t n = q_start[b + 1] - q_start[b];
    return q.rows(q_start[b], n).reshaped({1, n, kHeads, kDepth});
  }
};

// `got` (y, lse) must equal Attention over the cache of each request; other tokens have zeros.
void expect_attention(const Requests& r, const std::vector<Tensor>& got, const ops::PagedAttention& op,
                      const std::optional<Tensor>& sinks, double tolerance) {
  ops::Attention one;
  one.num_heads = kHeads, one.kv_heads = kKvHeads, one.head_dim = kDepth, one.mask = op.mask, one.window = op.window;
  one.layout = HeadLayout::HeadsInner;
  if (sinks) one.present.bits = 1U << 6;
  for (std::size_t b = 0; b < 3; ++b) {
    CAPTURE(b);
    std::vector<Tensor> in{r.queries(b), r.gathered(r.k, b), r.gathered(r.v, b)};
    if (sinks) in.push_back(*sinks);
    const std::vector<Tensor> alone = evaluate_op(one, in);
    const std::int64_t n = r.q_start[b + 1] - r.q_start[b];
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t h = 0; h < kHeads; ++h) {
        const std::int64_t row = (r.q_start[b] + i) * kHeads + h;
        CHECK(std::fabs(got[1].at(row) - alone[1].at(h * n + i)) <= tolerance);
        for (std::int64_t d = 0; d < kDepth; ++d)
          CHECK(std::fabs(got[0].at(row * kDepth + d) - alone[0].at((i * kHeads + h) * kDepth + d)) <= tolerance);
      }
  }
  for (std::int64_t row = r.q_start[3] * kHeads; row < r.tokens * kHeads; ++row) {
    CHECK(got[1].at(row) == -kInf);
    for (std::int64_t d = 0; d < kDepth; ++d) CHECK(got[0].at(row * kDepth + d) == 0);
  }
}

// On the cpu in F32. `native` is set to whether one kernel ran it, not its decomposition.
std::vector<Tensor> on_cpu(const ops::PagedAttention& op, const std::vector<Tensor>& operands, int threads,
                           bool native = true) {
  Graph g;
  NamedTensors values;
  std::vector<Value> in;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Tensor t = is_float(operands[i].dtype()) ? operands[i].cast(DType::F32) : operands[i];
    const std::string name = "x" + std::to_string(i);
    in.push_back(g.input(name, t.shape()));
    values.emplace(name, t);
  }
  const Expr y = g.add(op, in);
  g.set_outputs({y, y.result(1)});
  CompiledGraph f = Session().with_threads(threads).compile(std::move(g));
  bool whole = false;
  for (const Node& n : f.compile_result().lir.graph.nodes()) whole = whole || n.kind() == ops::PagedAttention::kind;
  CHECK(whole == native);
  return f.run_typed(values);
}

}  // namespace

TEST_CASE("paged attention is attention over each request's own cache; tokens of no request are zeros") {
  Requests r;
  // Elements that no request sees may hold anything: unused pages, rows beyond kv_len, queries of no request.
  for (std::int64_t e = 0; e < kPage * kKvHeads * kDepth; ++e) r.k.set(4 * kPage * kKvHeads * kDepth + e, kNan);
  for (std::int64_t e = 0; e < kKvHeads * kDepth; ++e) r.v.set((2 * kPage + 1) * kKvHeads * kDepth + e, kNan);
  for (std::int64_t e = 7 * kHeads * kDepth; e < 9 * kHeads * kDepth; ++e) r.q.set(e, kNan);
  for (const MaskKind kind : {MaskKind::None, MaskKind::Causal, MaskKind::SlidingWindow}) {
    CAPTURE(static_cast<int>(kind));
    auto op = paged(kind);
    op.window = kind == MaskKind::SlidingWindow ? 2 : 0;
    expect_attention(r, run_op(op, r.operands()), op, {}, 1e-12);
    for (int threads : {1, 3}) expect_attention(r, on_cpu(op, r.operands(), threads), op, {}, 2e-6);
    op.present.bits = 1U << 7;
    std::vector<Tensor> in = r.operands();
    in.push_back(doubles({kHeads}, {0.3, -kInf, 2, -1}));
    expect_attention(r, run_op(op, in), op, in.back(), 1e-12);
    for (int threads : {1, 3}) expect_attention(r, on_cpu(op, in, threads), op, in.back(), 2e-6);
  }
}

TEST_CASE("paged attention on the cpu is a kernel, but for masks of new tokens; lengths are clamped") {
  Requests r;
  r.kv_len = {9, 3, 4};
  const auto full = run_op(paged(MaskKind::Causal), r.operands());
  r.kv_len = {1000, 3, 4};
  const auto beyond = run_op(paged(MaskKind::Causal), r.operands());
  expect_close(beyond[0], full[0]);
  r.kv_len = {-1, 0, 4};
  for (const auto& got :
       {run_op(paged(MaskKind::Causal), r.operands()), on_cpu(paged(MaskKind::Causal), r.operands(), 2)})
    for (std::int64_t row = 0; row < 5 * kHeads; ++row) {
      CHECK(got[1].at(row) == -kInf);
      CHECK(got[0].at(row * kDepth) == 0);
    }
}

TEST_CASE("starts of requests may lie anywhere, and in any order") {
  constexpr std::int32_t low = -2147483647 - 1, high = 2147483647;
  for (const std::vector<std::int32_t>& starts : {std::vector<std::int32_t>{low, 1, high, 8},
                                                  {high, low, 3, high},
                                                  {-9, -8, 18, 27},
                                                  {-10, 17, 5, 6},
                                                  {3, 3, 2, 100},
                                                  {0, 9, 9, 10}}) {
    Requests r;
    r.q_start = starts;
    const auto op = paged(MaskKind::Causal);
    const auto rule = run_op(op, r.operands()), cpu = on_cpu(op, r.operands(), 2);
    for (std::int64_t i = 0; i < rule[0].num_elements(); ++i) CHECK(std::fabs(cpu[0].at(i) - rule[0].at(i)) < 2e-6);
  }
}

TEST_CASE("a paged mask covers a request's own new tokens: a draft tree") {
  // One request of 5 old keys and 3 new tokens; the third does not see the second.
  const Tensor q = sequence({3, kHeads, kDepth}), k = sequence({3, kPage, kKvHeads, kDepth}, 0.8, 0.1),
               v = sequence({3, kPage, kKvHeads, kDepth}, -0.5, 0.3);
  Tensor tree = Tensor::zeros(Shape({3, 3}, DType::Bool));
  for (int i : {0, 3, 4, 6, 8}) tree.set_i64(i, 1);
  const std::vector<Tensor> in{q, k, v, ints({1, 3}, {2, 0, 1}), ints({1}, {8}), ints({2}, {0, 3})};
  std::vector<Tensor> with = in;
  with.push_back(tree);
  const auto got = run_op(paged(MaskKind::Custom), with);
  const auto causal = run_op(paged(MaskKind::Causal), in);
  for (std::int64_t e = 0; e < 2 * kHeads * kDepth; ++e) CHECK(got[0].at(e) == doctest::Approx(causal[0].at(e)));
  // The third token as if the second did not exist: a bias hides its key.
  Tensor bias = doubles({3, 3}, {0, -kInf, -kInf, 0, 0, -kInf, 0, -kInf, 0});
  std::vector<Tensor> biased = in;
  biased.push_back(bias);
  expect_close(run_op(paged(MaskKind::Bias), biased)[0], got[0]);
  bool differs = false;
  for (std::int64_t e = 2 * kHeads * kDepth; e < 3 * kHeads * kDepth; ++e)
    differs = differs || std::fabs(got[0].at(e) - causal[0].at(e)) > 1e-3;
  CHECK(differs);
  const auto cpu = on_cpu(paged(MaskKind::Custom), with, 2, false);
  for (std::int64_t e = 0; e < 3 * kHeads * kDepth; ++e) CHECK(std::fabs(cpu[0].at(e) - got[0].at(e)) < 2e-6);
}

TEST_CASE("paged attention shape rules name what does not fit") {
  const Requests r;
  std::vector<Shape> in;
  for (const Tensor& t : r.operands()) in.push_back(t.shape());
  CHECK(infer_error(paged(MaskKind::Causal), in).empty());
  const auto with = [&](std::size_t i, Shape s) {
    std::vector<Shape> other = in;
    other[i] = std::move(s);
    return infer_error(paged(MaskKind::Causal), other);
  };
  CHECK(contains(with(0, Shape({9, 3, 2}, DType::F64)), "q must be [T, 4, 2], got [9, 3, 2]"));
  CHECK(contains(with(2, Shape({7, 3, 2, 3}, DType::F64)), "v_pool must be [7, 3, 2, 2]"));
  CHECK(contains(with(3, Shape({3, 3}, DType::I64)), "block_table must be I32 [B, M]"));
  CHECK(contains(with(4, Shape({4}, DType::I32)), "kv_len must be [3]"));
  CHECK(contains(with(5, Shape({3}, DType::I32)), "q_start must be [4]"));
  CHECK(contains(infer_error(paged(MaskKind::Custom), in), "mask"));
}
