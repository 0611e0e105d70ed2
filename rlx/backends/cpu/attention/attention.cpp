// Attention and rotary embedding. Heads may have any strides, so q, k and v may be slices of one projection.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "rlx/backends/cpu/entries.h"
#include "rlx/ir/ops/attention.h"
#include "rlx/ir/ops/rope.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t kLongestWindow = std::int64_t{1} << 40;  // longer than any sequence; subtraction cannot wrap

/// Batch, sequence and head strides of a value in some head layout. The elements of a head are contiguous.
struct HeadStrides {
  std::int64_t batch, seq, head, length;
};
HeadStrides head_strides(const View& v, HeadLayout layout, std::int64_t head_dim) {
  switch (layout) {
    case HeadLayout::Merged: return {v.stride(0), v.stride(1), head_dim, v.dim(1)};
    case HeadLayout::HeadsFirst: return {v.stride(0), v.stride(2), v.stride(1), v.dim(2)};
    case HeadLayout::HeadsInner: break;
  }
  return {v.stride(0), v.stride(1), v.stride(2), v.dim(1)};
}

// The operand of a node with the name `name`; -1 when it is absent.
int operand_at(const Graph& g, NodeId id, std::string_view name) {
  const Node& n = g.node(id);
  return find_operand(n.op, static_cast<int>(n.inputs.size()), name).value_or(-1);
}

const char* attention_refuses(const Graph& g, NodeId id) {
  for (int i = 0; i < 3; ++i)
    if (in_dtype(g, id, i) != DType::F32) return "q, k and v are not all f32";
  if (const int i = operand_at(g, id, "sinks"); i >= 0 && in_dtype(g, id, i) != DType::F32)
    return "its sinks are not f32";
  const int mask = operand_at(g, id, "mask");
  return refuse_unless(mask < 0 || in_dtype(g, id, mask) == DType::F32 || in_dtype(g, id, mask) == DType::Bool,
                       "its mask is neither f32 nor bool");
}

struct AttentionStep {
  AttentionF32 attention;
  AttentionPlan plan;
  const Scratch* scratch = nullptr;
  void (*run)(const AttentionF32&, const AttentionPlan&, std::int64_t, void*) = nullptr;
};
void run_attention(const AttentionStep& s, std::int64_t chunk) { s.run(s.attention, s.plan, chunk, s.scratch->mine()); }

void lower_attention(LowerContext& c) {
  const auto& op = c.op<ops::Attention>();
  const View q = c.in(0), k = c.in(1), v = c.in(2), y = c.out();
  if (y.elements() == 0 && !(c.is_read(1) && c.out(1).elements() != 0)) return;
  auto& s = c.keep<AttentionStep>();
  AttentionF32& a = s.attention;
  const HeadStrides qs = head_strides(q, op.layout, op.head_dim), ks = head_strides(k, op.layout, op.head_dim);
  const std::int64_t v_head_dim = op.v_head_dim.value_or(op.head_dim);
  const HeadStrides vs = head_strides(v, op.layout, v_head_dim), ys = head_strides(y, op.layout, v_head_dim);
  a.batch = q.dim(0);
  a.q_len = qs.length;
  a.k_len = ks.length;
  a.heads = op.num_heads;
  a.kv_heads = op.kv_heads;
  a.head_dim = op.head_dim;
  a.v_head_dim = v_head_dim;
  a.q_batch_stride = qs.batch, a.q_seq_stride = qs.seq, a.q_head_stride = qs.head;
  a.k_batch_stride = ks.batch, a.k_seq_stride = ks.seq, a.k_head_stride = ks.head;
  a.v_batch_stride = vs.batch, a.v_seq_stride = vs.seq, a.v_head_stride = vs.head;
  a.out_batch_stride = ys.batch, a.out_seq_stride = ys.seq, a.out_head_stride = ys.head;
  a.scale = static_cast<float>(op.scale.value_or(1.0 / std::sqrt(static_cast<double>(op.head_dim))));
  a.softcap = static_cast<float>(op.softcap.value_or(0.0));
  c.point(a.q, q);
  c.point(a.k, k);
  c.point(a.v, v);
  c.point(a.out, y);
  if (op.mask == MaskKind::Causal) a.mask_kind = AttentionMask::Causal;
  if (op.mask == MaskKind::SlidingWindow) a.mask_kind = AttentionMask::SlidingWindow;
  a.window = std::min(op.window, kLongestWindow);
  const auto operand = [&](std::string_view name) { return operand_at(c.graph(), c.id(), name); };
  if (const int i = operand("kv_len"); i >= 0) c.point(a.kv_lens, c.in(i));
  if (const int i = operand("q_len"); i >= 0) c.point(a.q_lens, c.in(i));
  if (const int i = operand("sinks"); i >= 0) {
    const View sinks = c.in(i);
    a.sinks_batch_stride = sinks.rank() == 2 ? sinks.stride(0) : 0;
    c.point(a.sinks, sinks);
  }
  if (c.is_read(1)) {
    c.point(a.lse, c.out(1));
    a.lse_head_stride = a.q_len, a.lse_batch_stride = a.heads * a.q_len;
  }
  if (const int at = operand("mask"); at >= 0) {
    const View m = c.in(at);
    std::int64_t strides[4] = {0, 0, 0, 0};  // right-aligned with [B, H, S_q, S_k]
    for (int i = 0; i < m.rank(); ++i)
      if (m.dim(i) != 1) strides[4 - m.rank() + i] = m.stride(i);
    if (op.mask == MaskKind::Custom) {
      a.custom_type = m.dtype == DType::F32 ? MaskType::F32 : MaskType::U8;
      a.custom_batch_stride = strides[0], a.custom_head_stride = strides[1];
      a.custom_q_stride = strides[2], a.custom_k_stride = strides[3];
      c.point(a.custom, m);
    } else {
      a.bias_batch_stride = strides[0], a.bias_head_stride = strides[1];
      a.bias_q_stride = strides[2], a.bias_k_stride = strides[3];
      c.point(a.bias, m);
    }
  }
  s.run = c.kernels().attention_f32;
  s.plan = c.kernels().attention_plan_f32(a, c.threads());
  s.scratch = c.scratch(s.plan.scratch_bytes);
  const double scores =
      static_cast<double>(a.batch * a.heads) * static_cast<double>(a.q_len) * static_cast<double>(a.k_len);
  c.step<run_attention>(
      s, s.plan.chunks,
      scores * (2.0 * static_cast<double>(a.head_dim + a.v_head_dim) / gemm_flops_per_ns(c.kernels().isa) + 0.4));
  // Items are ordered by sequence. A chunk that spans two sequences belongs to both.
  const std::int64_t per_sequence = s.plan.items / a.batch, per_chunk = s.plan.items_per_chunk;
  if (per_sequence % per_chunk == 0)
    c.tile_rows(a.batch, 1, per_sequence / per_chunk, {0, 1, 2}, {0, 1});
  else if (per_chunk % per_sequence == 0)
    c.tile_rows(a.batch, per_chunk / per_sequence, 1, {0, 1, 2}, {0, 1});
}

bool attention_reads_strided(const Graph&, NodeId, int) { return true; }

// -- paged attention --

// The element type of the pools; nullopt when the kernel does not support it.
std::optional<PoolType> pool_type(const ops::PagedAttention& op, DType dtype) {
  if (op.pool_scheme == QuantScheme::Q8_0) return PoolType::Q8_0;
  if (op.pool_scheme == QuantScheme::Q4_0) return PoolType::Q4_0;
  if (op.pool_scheme != QuantScheme::Affine) return std::nullopt;
  if (dtype == DType::F32) return PoolType::F32;
  if (dtype == DType::F16) return PoolType::F16;
  if (dtype == DType::BF16) return PoolType::BF16;
  return std::nullopt;
}

const char* paged_refuses(const Graph& g, NodeId id) {
  if (in_dtype(g, id, 0) != DType::F32) return "q is not f32";
  if (!pool_type(g.node(id).op.as<ops::PagedAttention>(), in_dtype(g, id, 1)))
    return "its pools are neither f32, f16, bf16 nor blocks of q8_0 or q4_0";
  if (const int i = operand_at(g, id, "sinks"); i >= 0 && in_dtype(g, id, i) != DType::F32)
    return "its sinks are not f32";
  return refuse_unless(operand_at(g, id, "mask") < 0, "it has a mask for the new tokens");
}

struct PagedStep {
  AttentionStep attend;
  const std::int32_t* q_start = nullptr;
  std::vector<std::int32_t> starts;  // of requests 1, 2, .. ascending
  std::vector<QueryRange> ranges;
  float *y = nullptr, *lse = nullptr;
  std::int64_t tokens = 0, width = 0, heads = 0;  // of a row of y and of lse
};

// Finds the rows of each request and writes the rows of none. A token belongs to the request with the last start at or
// before it. Starts should not decrease; for any starts, no token has two requests.
void find_requests(PagedStep& s, std::int64_t) {
  const auto requests = static_cast<std::int64_t>(s.ranges.size());
  std::copy_n(s.q_start + 1, s.starts.size(), s.starts.begin());
  std::sort(s.starts.begin(), s.starts.end());
  const auto clear = [&](std::int64_t from, std::int64_t to) {
    if (from >= to) return;
    std::fill_n(s.y + from * s.width, (to - from) * s.width, 0.0F);
    if (s.lse) std::fill_n(s.lse + from * s.heads, (to - from) * s.heads, -std::numeric_limits<float>::infinity());
  };
  std::int64_t done = 0;
  for (std::int64_t b = 0; b < requests; ++b) {
    const std::int64_t start = s.q_start[b];
    const std::int64_t count = std::clamp<std::int64_t>(s.q_start[b + 1] - start, 0, s.tokens);
    std::int64_t from = std::max<std::int64_t>(start, 0), to = std::min(start + count, s.tokens);
    if (b > 0) from = std::max<std::int64_t>(from, s.starts[static_cast<std::size_t>(b - 1)]);
    if (b + 1 < requests) to = std::min<std::int64_t>(to, s.starts[static_cast<std::size_t>(b)]);
    QueryRange& r = s.ranges[static_cast<std::size_t>(b)];
    r = {from, std::max<std::int64_t>(to - from, 0), count - (from - start)};
    if (r.count == 0) continue;
    clear(done, from);
    done = to;
  }
  clear(done, s.tokens);
}
void run_paged(const PagedStep& s, std::int64_t chunk) { run_attention(s.attend, chunk); }

void lower_paged(LowerContext& c) {
  const auto& op = c.op<ops::PagedAttention>();
  const auto at = [&](std::string_view name) { return operand_at(c.graph(), c.id(), name); };
  const View q = c.in(0), k = c.in(1), v = c.in(2), blocks = c.in(3), y = c.out();
  const bool with_lse = c.is_read(1);
  if (y.elements() == 0) return;
  auto& s = c.keep<PagedStep>();
  const std::int64_t requests = blocks.dim(0);
  s.ranges.resize(static_cast<std::size_t>(requests));
  s.starts.resize(static_cast<std::size_t>(std::max<std::int64_t>(requests - 1, 0)));
  s.tokens = q.dim(0), s.heads = op.num_heads, s.width = y.dim(1) * y.dim(2);
  c.point(s.q_start, c.in(5));
  c.point(s.y, y);
  if (with_lse) c.point(s.lse, c.out(1));
  c.step<find_requests>(s, 1, 20.0 * static_cast<double>(requests));
  AttentionF32& a = s.attend.attention;
  a.batch = requests, a.heads = op.num_heads, a.kv_heads = op.kv_heads;
  a.head_dim = op.head_dim, a.v_head_dim = y.dim(2);
  a.q_len = s.tokens, a.k_len = blocks.dim(1) * k.dim(1);
  a.q_seq_stride = q.stride(0), a.q_head_stride = q.stride(1);
  a.k_seq_stride = k.stride(1), a.k_head_stride = k.stride(2), a.k_page_stride = k.stride(0);
  a.v_seq_stride = v.stride(1), a.v_head_stride = v.stride(2), a.v_page_stride = v.stride(0);
  a.out_seq_stride = y.stride(0), a.out_head_stride = y.stride(1);
  a.scale = static_cast<float>(op.scale.value_or(1.0 / std::sqrt(static_cast<double>(op.head_dim))));
  a.softcap = static_cast<float>(op.softcap.value_or(0.0));
  if (op.mask == MaskKind::Causal) a.mask_kind = AttentionMask::Causal;
  if (op.mask == MaskKind::SlidingWindow) a.mask_kind = AttentionMask::SlidingWindow;
  a.window = std::min(op.window, kLongestWindow);
  a.page = k.dim(1), a.pages = k.dim(0), a.blocks_stride = blocks.dim(1);
  a.ranges = s.ranges.data();
  a.pool = *pool_type(op, k.dtype);
  if (op.round_q && a.pool == PoolType::Q8_0) a.rounds_q = c.kernels().interleaved;
  c.point(a.q, q);
  c.point(a.k, k);
  c.point(a.v, v);
  c.point(a.out, y);
  c.point(a.blocks, blocks);
  c.point(a.kv_lens, c.in(4));
  if (const int i = at("sinks"); i >= 0) c.point(a.sinks, c.in(i));
  if (with_lse) {
    c.point(a.lse, c.out(1));
    a.lse_q_stride = op.num_heads, a.lse_head_stride = 1;
  }
  s.attend.run = c.kernels().attention_f32;
  s.attend.plan = c.kernels().attention_plan_f32(a, c.threads());
  s.attend.scratch = c.scratch(s.attend.plan.scratch_bytes);
  const double scores = static_cast<double>(a.heads) * static_cast<double>(s.tokens) * static_cast<double>(a.k_len);
  c.step<run_paged>(
      s, s.attend.plan.chunks,
      scores * (2.0 * static_cast<double>(a.head_dim + a.v_head_dim) / gemm_flops_per_ns(c.kernels().isa) + 0.4));
}

// Page tables and lengths are read with their strides.
bool paged_reads_strided(const Graph&, NodeId, int operand) { return operand < 3; }

// -- rope --

const char* rope_refuses(const Graph& g, NodeId id) {
  for (int i = 0; i < 3; ++i)
    if (in_dtype(g, id, i) != DType::F32) return "x, cos and sin are not all f32";
  return refuse_unless(in_shape(g, id, 1).rank() <= 3, "its angles have more than three axes");
}

struct RopeStep {
  RopeF32 rope;
  std::int64_t rows = 0, rows_per_chunk = 0;
  void (*run)(const RopeF32&, std::int64_t, std::int64_t) = nullptr;
};
void run_rope(const RopeStep& s, std::int64_t chunk) {
  const std::int64_t begin = chunk * s.rows_per_chunk;
  s.run(s.rope, begin, std::min(s.rows, begin + s.rows_per_chunk));
}

void lower_rope(LowerContext& c) {
  const auto& op = c.op<ops::Rope>();
  const View x = c.in(0), cos = c.in(1), sin = c.in(2), y = c.out();
  if (y.elements() == 0) return;
  const HeadStrides xs = head_strides(x, op.layout, op.head_dim), ys = head_strides(y, op.layout, op.head_dim);
  const std::int64_t heads = op.layout == HeadLayout::Merged       ? x.dim(-1) / op.head_dim
                             : op.layout == HeadLayout::HeadsFirst ? x.dim(1)
                                                                   : x.dim(2);
  const std::int64_t batch = x.dim(0), seq = xs.length;
  // A table per batch entry takes one call per entry; a shared table takes one call in all.
  const bool per_batch = cos.rank() == 3 && cos.dim(0) > 1;
  const std::int64_t calls = per_batch ? batch : 1;
  for (std::int64_t b = 0; b < calls; ++b) {
    auto& s = c.keep<RopeStep>();
    RopeF32& r = s.rope;
    r.batch = per_batch ? 1 : batch;
    r.seq = seq;
    r.heads = heads;
    r.head_dim = op.head_dim;
    r.n_rot = op.n_rot;
    r.interleaved = op.pairing == RopePairing::Interleaved;
    r.inverse = op.inverse;
    r.x_batch_stride = xs.batch, r.x_seq_stride = xs.seq, r.x_head_stride = xs.head;
    r.y_batch_stride = ys.batch, r.y_seq_stride = ys.seq, r.y_head_stride = ys.head;
    r.table_stride = cos.dim(-1);
    r.table_rows = cos.dim(-2);
    c.point(r.x, x, b * xs.batch);
    c.point(r.y, y, b * ys.batch);
    c.point(r.cos, cos, b * cos.dim(-1) * cos.dim(-2));
    c.point(r.sin, sin, b * cos.dim(-1) * cos.dim(-2));
    if (const int at = operand_at(c.graph(), c.id(), "positions"); at >= 0) {
      const View p = c.in(at);
      r.pos_batch_stride = p.rank() == 2 ? p.stride(0) : 0;
      r.pos_seq_stride = 1;
      c.point(r.positions, p, b * r.pos_batch_stride);
    }
    s.run = c.kernels().rope_f32;
    s.rows = r.batch * seq;
    const std::int64_t cols = heads * op.head_dim;
    s.rows_per_chunk = std::max<std::int64_t>(1, rows_per_chunk(s.rows, cols, 0.3, c.threads()));
    c.step<run_rope>(s, (s.rows + s.rows_per_chunk - 1) / s.rows_per_chunk, 0.3 * static_cast<double>(s.rows * cols));
  }
}

bool rope_reads_strided(const Graph&, NodeId, int operand) { return operand == 0; }
bool rope_in_place(const Graph& g, NodeId id, int operand, int) {
  const auto& in = g.node(id).inputs;
  return operand == 0 && !(in[0] == in[1]) && !(in[0] == in[2]);
}

constexpr KernelEntry kAttentionEntries[] = {
    {.kind = OpKind::Attention,
     .kernel = "attention_f32",
     .refuses = attention_refuses,
     .lower = lower_attention,
     .reads_strided = attention_reads_strided,
     .skips_unread = 1U << 1},
    {.kind = OpKind::PagedAttention,
     .kernel = "paged_attention_f32",
     .refuses = paged_refuses,
     .lower = lower_paged,
     .reads_strided = paged_reads_strided,
     .skips_unread = 1U << 1},
    {OpKind::Rope, "rope_f32", rope_refuses, lower_rope, rope_reads_strided, rope_in_place},
};

}  // namespace

std::span<const KernelEntry> attention_entries() { return kAttentionEntries; }

}  // namespace rlx::cpu
