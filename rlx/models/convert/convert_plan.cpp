// Plans each target tensor from source tensors.
#include "rlx/models/convert/convert_plan.h"

#include <algorithm>

#include "rlx/error.h"
#include "rlx/models/model_family.h"

namespace rlx {
namespace {

bool has_tensor_of(const TensorRule& rule, const ModelSizes& s, std::int64_t layer) {
  const bool experts = s.experts > 0 && layer >= s.dense_layers;
  switch (rule.need) {
    case TensorNeed::DenseLayers: return !experts;
    case TensorNeed::ExpertLayers: return experts;
    case TensorNeed::SharedExpert: return experts && s.shared_experts > 0;
    case TensorNeed::QueryRank: return s.q_rank > 0;
    case TensorNeed::NoQueryRank: return s.q_rank == 0;
    case TensorNeed::LatentSplit: return !s.latent_whole;
    case TensorNeed::LatentWhole: return s.latent_whole;
    default: return true;
  }
}

}  // namespace

std::vector<ExpectedTensor> expected_tensors(const DecoderFamily& a, const ModelSizes& s) {
  std::vector<ExpectedTensor> out;
  const auto add = [&](bool in_layers, std::int64_t layer) {
    for (const TensorRule& rule : a.tensors)
      if ((rule.hf.find("{}") != std::string_view::npos) == in_layers && has_tensor_of(rule, s, layer))
        out.push_back({numbered_name(rule.hf, "{}", layer), numbered_name(rule.gguf, "{}", layer), &rule});
  };
  add(false, 0);
  for (std::int64_t i = 0; i < s.layers; ++i) add(true, i);
  return out;
}

TensorPlans::Stored TensorPlans::stored(const std::string& name) const {
  if (const auto* file = dynamic_cast<const GgufFile*>(&source_)) {
    const GgufTensor& t = file->at(name);
    return {t.type, {t.dims.begin(), t.dims.end()}};
  }
  const TensorView view = *source_.find(name);
  return {gguf_type_of_view(view, name), {view.dims.begin(), view.dims.end()}};
}

// `fits` is only called for tensors of that rank.
template <class F>
void TensorPlans::require(const std::string& name, const Stored& t, std::size_t rank, F fits) const {
  if (t.dims.size() != rank || !fits())
    throw Error(ErrorCode::BadFile, concat_text("tensor \"", name, "\" is ", dims_text(t.dims),
                                                ", which does not match the configuration"));
}

ConvertedTensor TensorPlans::plan(const std::vector<std::string>& sources, std::string name,
                                  TensorChange change) const {
  ConvertedTensor t;
  t.sources = sources, t.name = std::move(name);
  const Stored first = stored(sources[0]);
  t.from = first.type, t.dims = first.dims;
  switch (change) {
    case TensorChange::None:
    case TensorChange::Number:
    case TensorChange::NumberScalar: break;
    case TensorChange::AddOne: t.added = to_gguf_ ? 1.0F : -1.0F; break;
    case TensorChange::QueryPairs: order_rows(t, s_.heads, head_row_order); break;
    case TensorChange::KeyPairs: order_rows(t, s_.kv_heads, head_row_order); break;
    case TensorChange::HeadsToParts: order_rows(t, 3 * s_.heads, part_row_order); break;
    case TensorChange::Experts: stack(t, first); break;
    case TensorChange::Transposed: turn(t, first); break;
    case TensorChange::EvenColumns:
    case TensorChange::OddColumns:
      to_gguf_ ? pick(t, first, change == TensorChange::OddColumns) : weave(t, first);
      break;
    case TensorChange::LatentKeys:
    case TensorChange::LatentValues:
      to_gguf_ ? split_latent(t, first, change == TensorChange::LatentKeys) : join_latent(t, first);
      break;
  }
  return t;
}
ConvertedTensor TensorPlans::plan_expert(const std::string& from, std::string name, std::int64_t expert) const {
  ConvertedTensor t;
  t.sources = {from}, t.name = std::move(name);
  const Stored all = stored(from);
  require(from, all, 3, [&] { return all.dims[0] == s_.experts; });
  t.from = all.type, t.dims = {all.dims[1], all.dims[2]}, t.first_row = expert * all.dims[1];
  return t;
}

void TensorPlans::order_rows(ConvertedTensor& t, std::int64_t heads,
                             std::vector<std::int64_t> (*order)(std::int64_t, std::int64_t, bool)) const {
  const std::int64_t rows = t.dims.size() == 1 ? t.dims[0] : t.rows();
  if (rows != heads * s_.head_dim)
    throw Error(ErrorCode::BadFile, concat_text("tensor \"", t.sources[0], "\" has ", rows, " rows, expected ", heads,
                                                " heads of ", s_.head_dim));
  t.row_order = order(rows, s_.head_dim, to_gguf_);
}
void TensorPlans::stack(ConvertedTensor& t, const Stored& first) const {
  require(t.sources[0], first, 2, [] { return true; });
  for (const std::string& name : t.sources) {
    const Stored other = stored(name);
    require(name, other, 2, [&] { return other.dims == first.dims; });
    if (other.type != first.type)
      throw Error(ErrorCode::Unsupported, concat_text("tensors \"", t.sources[0], "\" and \"", name,
                                                      "\" of one layer's experts have different dtypes"));
  }
  t.dims.insert(t.dims.begin(), static_cast<std::int64_t>(t.sources.size()));
}
// A matrix, or one matrix for each expert, as the rows and columns of a part.
MatrixPart TensorPlans::part_of(const std::string& name, const Stored& t, std::size_t rank) const {
  require(name, t, rank, [&] { return rank < 3 || t.dims[0] == s_.experts; });
  MatrixPart p;
  p.source = name, p.from = t.type;
  p.rows = rank == 1 ? 1 : t.dims[rank - 2], p.columns = t.dims[rank - 1], p.row_step = p.rows;
  return p;
}
void TensorPlans::turn(ConvertedTensor& t, const Stored& first) const {
  const std::size_t rank = first.dims.size() == 3 ? 3 : 2;
  MatrixPart p = part_of(t.sources[0], first, rank);
  p.turned = true;
  t.plan.matrices = rank == 3 ? s_.experts : 1;
  std::swap(t.dims[rank - 2], t.dims[rank - 1]);
  t.plan.parts = {std::move(p)};
}
// Every second column of [experts, in, 2 out], transposed; or of [experts, 2 out].
void TensorPlans::pick(ConvertedTensor& t, const Stored& first, bool odd) const {
  const bool matrix = first.dims.size() == 3;
  MatrixPart p = part_of(t.sources[0], first, matrix ? 3 : 2);
  require(t.sources[0], first, matrix ? 3 : 2, [&] { return first.dims[0] == s_.experts && p.columns % 2 == 0; });
  if (!matrix) p.rows = p.row_step = 1;
  p.first_column = odd ? 1 : 0, p.column_step = 2, p.turned = matrix;
  t.plan.matrices = s_.experts;
  t.dims = matrix ? std::vector<std::int64_t>{s_.experts, p.columns / 2, p.rows}
                  : std::vector<std::int64_t>{s_.experts, p.columns / 2};
  t.plan.parts = {std::move(p)};
}
void TensorPlans::weave(ConvertedTensor& t, const Stored& first) const {
  const bool matrix = first.dims.size() == 3;
  t.plan.matrices = s_.experts, t.plan.woven = true;
  for (const std::string& name : t.sources) {
    const Stored half = stored(name);
    require(name, half, matrix ? 3 : 2, [&] { return half.dims == first.dims && half.dims[0] == s_.experts; });
    MatrixPart p = part_of(name, half, matrix ? 3 : 2);
    if (!matrix) p.rows = p.row_step = 1;
    p.turned = matrix;
    t.plan.parts.push_back(std::move(p));
  }
  t.dims = matrix ? std::vector<std::int64_t>{s_.experts, first.dims[2], 2 * first.dims[1]}
                  : std::vector<std::int64_t>{s_.experts, 2 * first.dims[1]};
}
void TensorPlans::split_latent(ConvertedTensor& t, const Stored& first, bool keys) const {
  const std::int64_t both = s_.nope_dim + s_.v_dim;
  require(t.sources[0], first, 2, [&] { return first.dims[0] == s_.heads * both; });
  MatrixPart p = part_of(t.sources[0], first, 2);
  p.rows = keys ? s_.nope_dim : s_.v_dim, p.first_row = keys ? 0 : s_.nope_dim, p.row_step = both, p.turned = keys;
  t.plan.matrices = s_.heads;
  t.dims = keys ? std::vector<std::int64_t>{s_.heads, p.columns, p.rows}
                : std::vector<std::int64_t>{s_.heads, p.rows, p.columns};
  t.plan.parts = {std::move(p)};
}
void TensorPlans::join_latent(ConvertedTensor& t, const Stored& keys) const {
  require(t.sources[0], keys, 3, [&] { return keys.dims[0] == s_.heads && keys.dims[2] == s_.nope_dim; });
  const std::int64_t rank = keys.dims[1];
  if (t.sources.size() != 2)
    throw Error(ErrorCode::BadFile, concat_text("tensor \"", t.name, "\" needs two source tensors"));
  const Stored values = stored(t.sources[1]);
  require(t.sources[1], values, 3, [&] { return values.dims == std::vector<std::int64_t>{s_.heads, s_.v_dim, rank}; });
  for (std::size_t i = 0; i < 2; ++i) {
    MatrixPart p;
    p.source = t.sources[i], p.from = i == 0 ? keys.type : values.type;
    p.rows = i == 0 ? rank : s_.v_dim, p.columns = i == 0 ? s_.nope_dim : rank;
    p.row_step = p.rows, p.turned = i == 0;
    t.plan.parts.push_back(std::move(p));
  }
  t.plan.matrices = s_.heads;
  t.dims = {s_.heads * (s_.nope_dim + s_.v_dim), rank};
}

}  // namespace rlx
