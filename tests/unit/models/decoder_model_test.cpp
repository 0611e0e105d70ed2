// Decoders of every family against logits of Python's transformers: whole prompts, chunks, single steps, batches.
#include "rlx/models/decoder_model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <thread>
#include <utility>
#include <vector>

#include "rlx/base/stop_request.h"
#include "tests/support/decoder_reference.h"
#include "tests/support/encoder_reference.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;
using test::decoder_reference;
using test::DecoderReference;
using test::error_text;
using test::logit_error;

constexpr double kNear = 2e-5;  // of the largest logit, in f32

DecoderOptions for_reference(const DecoderReference& r) {
  DecoderOptions o;
  o.context = static_cast<std::int64_t>(r.tokens.size());  // RoPE angles may depend on the context
  return o;
}

struct LoadedReference {
  explicit LoadedReference(const std::string& name) : reference(decoder_reference(name)) {
    test::write_model(folder, reference);
  }
  DecoderModel model(const DecoderOptions& options) const { return DecoderModel::load(folder.path(), options); }
  DecoderModel model() const { return model(for_reference(reference)); }
  std::span<const TokenId> tokens() const { return reference.tokens; }
  DecoderReference reference;
  test::TempDir folder;
};

// The error of logits computed in chunks of the given sizes, in a cycle.
double chunked_error(DecoderModel& m, const LoadedReference& r, const std::vector<std::size_t>& sizes) {
  double worst = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; at < r.tokens().size(); ++i) {
    const std::size_t n = std::min(sizes[i % sizes.size()], r.tokens().size() - at);
    const Tensor got = m.forward(r.tokens().subspan(at, n));
    const double error = logit_error(got, r.reference, static_cast<std::int64_t>(at));
    if (!(error <= worst)) worst = error;
    at += n;
  }
  return worst;
}

}  // namespace

TEST_CASE("decoder: every family gives the reference's logits, at once, in chunks and step by step") {
  const std::vector<std::string> names = test::decoder_references();
  CHECK(names.size() >= 26);
  std::set<std::string> families;
  for (const std::string& name : names) {
    CAPTURE(name);
    const LoadedReference r(name);
    DecoderModel m = r.model();
    families.insert(m.config().family);
    CHECK(m.program().compile_result().lir.plan.state_copies.empty());  // the cache is written in place
    CHECK(logit_error(m.forward(r.tokens()), r.reference) <= kNear);
    m.reset();
    CHECK(chunked_error(m, r, {7, 1, 13, 2}) <= kNear);
    m.reset();
    CHECK(chunked_error(m, r, {1}) <= kNear);
    CHECK(m.length() == static_cast<std::int64_t>(r.tokens().size()));
  }
  for (const std::string& family : decoder_families())
    CHECK_MESSAGE(families.contains(family), family, " is not proved");
}

TEST_CASE("decoder: over 256 steps the best token is the reference's wherever that one is clear") {
  for (const char* name : {"llama3", "mistral"}) {
    CAPTURE(name);
    const LoadedReference r(name);
    DecoderModel m = r.model();
    const std::int64_t vocab = r.reference.logits.dim(1);
    double largest = 0;
    for (std::int64_t i = 0; i < r.reference.logits.num_elements(); ++i)
      if (const double x = std::fabs(r.reference.logits.at(i)); !(x <= largest)) largest = x;
    std::int64_t clear = 0;
    REQUIRE(r.tokens().size() == 256);
    for (std::size_t t = 0; t < r.tokens().size(); ++t) {
      const Tensor got = m.forward(r.tokens().subspan(t, 1), LogitRows::Last);
      const auto best = [&](const Tensor& logits, std::int64_t row, std::int64_t but) {
        std::int64_t at = but == 0 ? 1 : 0;
        for (std::int64_t v = 0; v < vocab; ++v)
          if (v != but && logits.at(row * vocab + v) > logits.at(row * vocab + at)) at = v;
        return at;
      };
      const auto row = static_cast<std::int64_t>(t);
      const std::int64_t want = best(r.reference.logits, row, -1), second = best(r.reference.logits, row, want);
      const double gap = r.reference.logits.at(row * vocab + want) - r.reference.logits.at(row * vocab + second);
      if (!(gap > 10 * kNear * largest)) continue;
      ++clear;
      CHECK(best(got, 0, -1) == want);
    }
    CHECK(clear >= 250);
  }
}

TEST_CASE("decoder: a row has the same bits however its tokens come, alone and beside others, in pieces and in pages") {
  const auto rows_of = [](const Tensor& t, std::int64_t first, std::int64_t count) {
    const auto* from = t.values<float>().data() + first * t.dim(1);
    return std::vector<float>(from, from + count * t.dim(1));
  };
  const std::pair<const char*, MatmulPrecision> cases[] = {{"mistral", MatmulPrecision::Exact},  // windows
                                                           {"gpt_oss", MatmulPrecision::Exact},  // sinks and experts
                                                           {"mistral", MatmulPrecision::BF16},
                                                           {"gpt_oss", MatmulPrecision::Int8}};
  for (const auto& one : cases) {
    CAPTURE(one.first);
    CAPTURE(std::string(matmul_precision_name(one.second)));
    const LoadedReference r(one.first);
    DecoderOptions o = for_reference(r.reference);
    o.matmul_precision = one.second;
    DecoderModel alone = r.model(o);
    const Tensor want = alone.forward(r.tokens());
    const auto n = static_cast<std::int64_t>(r.tokens().size());
    alone.reset();
    for (std::int64_t t = 0; t < n; ++t)
      CHECK(rows_of(alone.forward(r.tokens().subspan(static_cast<std::size_t>(t), 1)), 0, 1) == rows_of(want, t, 1));
    // A prompt longer than a run, with the last row of logits alone.
    o.max_tokens = 9;
    DecoderModel small = r.model(o);
    CHECK(rows_of(small.forward(r.tokens()), 0, n) == rows_of(want, 0, n));
    small.truncate(5);
    CHECK(rows_of(small.forward(r.tokens().subspan(5), LogitRows::Last), 0, 1) == rows_of(want, n - 1, 1));
    // Three sequences in one pool, at different positions of the text, in changing order. Attention sums over blocks of
    // 64 keys, which other page sizes would split.
    o.page = 64, o.sequences = 3, o.max_tokens = 20;
    DecoderModel three = r.model(o);
    const std::span<const TokenId> text = r.tokens();
    const SequenceTokens first[] = {{2, text.first(11)}, {0, text.first(3)}, {1, text.first(30)}};
    const Tensor a = three.forward(first);
    CHECK(rows_of(a, 0, 11) == rows_of(want, 0, 11));
    CHECK(rows_of(a, 11, 3) == rows_of(want, 0, 3));
    CHECK(rows_of(a, 14, 30) == rows_of(want, 0, 30));
    const auto rest = static_cast<std::size_t>(n) - 11;
    const SequenceTokens second[] = {{0, text.subspan(3, 1)}, {2, text.subspan(11, rest)}, {1, text.subspan(30, 1)}};
    const Tensor b = three.forward(second, LogitRows::Last);
    CHECK(rows_of(b, 0, 1) == rows_of(want, 3, 1));
    CHECK(rows_of(b, 1, 1) == rows_of(want, n - 1, 1));
    CHECK(rows_of(b, 2, 1) == rows_of(want, 30, 1));
    // Pages that one sequence released are used by another.
    three.truncate(0, 2);
    const SequenceTokens third[] = {{1, text.subspan(31, 20)}, {2, text.first(20)}};
    const Tensor c = three.forward(third);
    CHECK(rows_of(c, 0, 20) == rows_of(want, 31, 20));
    CHECK(rows_of(c, 20, 20) == rows_of(want, 0, 20));
    CHECK(three.length(2) == 20);
    // Each part gets logits of the requested number of last tokens, also if a run splits it.
    three.reset();
    const SequenceTokens some[] = {{1, text.first(25), 8}, {2, text.first(9), 0}, {0, text.first(17)}};
    const Tensor d = three.forward(some, LogitRows::Last);
    CHECK(d.dim(0) == 9);
    CHECK(rows_of(d, 0, 8) == rows_of(want, 17, 8));
    CHECK(rows_of(d, 8, 1) == rows_of(want, 16, 1));
    const SequenceTokens none[] = {{2, text.subspan(9, 4), 0}};
    CHECK(three.forward(none).dim(0) == 0);
    const SequenceTokens behind[] = {{2, text.subspan(13, 2)}};
    CHECK(rows_of(three.forward(behind), 0, 2) == rows_of(want, 13, 2));
  }
}

TEST_CASE("decoder: a load that is asked to stop ends between its parts, wherever that is") {
  const LoadedReference r("llama2");
  static int asked = 0, allowed = 0;
  const std::atomic<bool> flag{true};
  std::optional<DecoderModel> m;
  int stopped = 0;
  for (allowed = 0; !m; ++allowed) {
    REQUIRE(allowed < 1000);
    asked = 0;
    // Once only: a load that goes on after that has lost the request.
    const StopRequest request(flag, [] { return ++asked == allowed + 1; });
    try {
      m = r.model();
    } catch (const Error& e) {
      CHECK(e.code() == ErrorCode::Interrupted);
      ++stopped;
    }
  }
  CHECK(stopped > 20);  // three layers of seven matrices
  CHECK(logit_error(m->forward(r.tokens()), r.reference) <= kNear);
}

TEST_CASE("decoder: a call during another thread's is an error, and the first has its result") {
  const LoadedReference r("llama2");
  DecoderModel m = r.model();
  std::atomic<int> answered{0}, wrong{0};
  const auto work = [&] {
    for (int i = 0; i < 20; ++i) {
      try {
        m.reset();
        if (m.forward(r.tokens()).size_bytes() == 0) ++wrong;
        ++answered;
      } catch (const Error& e) {
        if (!contains(e.what(), "two threads call one DecoderModel at the same time") && !contains(e.what(), "context"))
          ++wrong;
      }
    }
  };
  std::thread other(work);
  work();
  other.join();
  CHECK(wrong == 0);
  CHECK(answered > 0);
  m.reset();
  CHECK(logit_error(m.forward(r.tokens()), r.reference) <= kNear);
}

TEST_CASE("decoder: small pages, and fewer of them than all sequences could fill") {
  const LoadedReference r("gpt_oss");
  DecoderOptions o = for_reference(r.reference);
  o.page = 8, o.pages = 9, o.sequences = 2;
  DecoderModel m = r.model(o);
  CHECK(chunked_error(m, r, {5, 1, 11}) <= kNear);  // takes 8 pages
  const SequenceTokens both[] = {{1, r.tokens().first(9)}};
  CHECK(contains(error_text([&] { (void)m.forward(both); }), "sequence 1 needs 2 more of its 9 pages, 1 are free"));
  CHECK(m.length(1) == 0);
  m.truncate(30);
  CHECK(logit_error(m.forward(both), r.reference) <= kNear);
  CHECK(logit_error(m.forward(r.tokens().subspan(30, 20)), r.reference, 30) <= kNear);
}

TEST_CASE("decoder: a cache in fewer bits is near the one in f32") {
  const DecoderReference reference = decoder_reference("llama2");
  const LoadedReference r("llama2");
  struct Kind {
    DecoderOptions options;
    double near;
  };
  for (const Kind& kind : {Kind{{.cache_dtype = DType::F16}, 5e-3}, Kind{{.cache_dtype = DType::BF16}, 4e-2}}) {
    DecoderOptions o = kind.options;
    o.context = 48;
    DecoderModel m = r.model(o), whole = r.model();
    CHECK(m.cache_bytes() * 2 == whole.cache_bytes());
    const double steps = chunked_error(m, r, {5, 1});
    CHECK(steps <= kind.near);
    CHECK(steps > kNear);  // an 8-bit cache differs
  }
}

TEST_CASE("decoder: a profile names the kernels of a run and leaves the sequence as it is") {
  const DecoderReference reference = test::decoder_reference("llama2");
  const test::TempDir folder;
  test::write_model(folder, reference);
  DecoderModel m = DecoderModel::load(folder.path(), {.context = 48, .page = 8});
  const std::span<const TokenId> tokens(reference.tokens);
  (void)m.forward(tokens.first(5));
  const std::vector<NodeTime> times = m.profile(tokens.subspan(5, 3));
  CHECK(std::any_of(times.begin(), times.end(), [](const NodeTime& t) { return t.op == "paged_attention"; }));
  CHECK(m.length() == 5);
  CHECK(m.cache().free_pages() == m.cache().pages() - 1);
  CHECK(logit_error(m.forward(tokens.subspan(5)), reference, 5) <= kNear);
}

TEST_CASE("decoder: keys and values as blocks") {
  DecoderReference reference = test::reference_of_wide_heads();
  const test::TempDir folder;
  test::write_model(folder, reference);
  DecoderModel whole = DecoderModel::load(folder.path(), {.context = 48});
  reference.logits = whole.forward(reference.tokens);
  struct Kind {
    QuantScheme scheme;
    double near;
  };
  for (const Kind& kind : {Kind{QuantScheme::Q8_0, 0.04}, Kind{QuantScheme::Q4_0, 0.5}}) {
    const QuantScheme scheme = kind.scheme;
    const double near = kind.near;
    CAPTURE(std::string(quant_scheme_name(scheme)));
    DecoderModel m = DecoderModel::load(folder.path(), {.context = 48, .cache_scheme = scheme});
    CHECK(m.cache_bytes() < whole.cache_bytes() / 3);
    const double whole_text = logit_error(m.forward(reference.tokens), reference);
    CHECK(whole_text <= near);
    CHECK(whole_text > kNear);
    m.reset();
    double steps = 0;
    for (std::size_t t = 0; t < reference.tokens.size(); ++t) {
      const double error = logit_error(m.forward(std::span<const TokenId>(reference.tokens).subspan(t, 1)), reference,
                                       static_cast<std::int64_t>(t));
      if (!(error <= steps)) steps = error;
    }
    CHECK(steps <= near);
  }
}

TEST_CASE("decoder: what a configuration says is heard: each change of one moves the logits") {
  struct Change {
    const char *model, *from, *to;
  };
  for (const Change& c : {
           Change{"mistral", "\"sliding_window\":12", "\"sliding_window\":13"},
           {"gemma2", "\"sliding_window\":10", "\"sliding_window\":11"},
           {"gemma2", "\"attn_logit_softcapping\":5.0", "\"attn_logit_softcapping\":50.0"},
           {"gemma2", "\"final_logit_softcapping\":0.8", "\"final_logit_softcapping\":80"},
           {"gemma2", "\"query_pre_attn_scalar\":24", "\"query_pre_attn_scalar\":16"},
           {"gemma3", "\"rope_local_base_freq\":10000.0", "\"rope_local_base_freq\":1000.0"},
           {"gemma3", "\"factor\":8.0", "\"factor\":7.0"},
           {"llama3", "\"high_freq_factor\":4.0", "\"high_freq_factor\":3.0"},
           {"llama3", "\"factor\":8.0", "\"factor\":7.0"},
           {"llama_dynamic", "\"factor\":2.0", "\"factor\":3.0"},
           {"llama_linear", "\"factor\":4.0", "\"factor\":3.0"},
           {"llama_yarn", "\"factor\":4.0", "\"factor\":3.0"},
           {"gpt_oss", "\"truncate\":false", "\"truncate\":true"},
           {"deepseek_v2_lite", "\"mscale_all_dim\":0.707", "\"mscale_all_dim\":0.5"},
           {"deepseek_v2", "\"topk_group\":2", "\"topk_group\":4"},
           {"deepseek_v2", "\"routed_scaling_factor\":2.5", "\"routed_scaling_factor\":2"},
           {"qwen3_moe", "\"norm_topk_prob\":true", "\"norm_topk_prob\":false"},
           {"phi3", "\"original_max_position_embeddings\":32", "\"original_max_position_embeddings\":64"},
           {"granite", "\"residual_multiplier\":0.4", "\"residual_multiplier\":0.5"},
           {"qwen2_window", "\"max_window_layers\":1", "\"max_window_layers\":2"},
       }) {
    CAPTURE(c.model);
    CAPTURE(c.from);
    DecoderReference reference = decoder_reference(c.model);
    // Newer files list the layer types besides the older key. The list takes precedence, so it is removed here.
    const std::size_t list = reference.config.find("\"layer_types\":[");
    if (list != std::string::npos && std::string_view(c.from).find("max_window_layers") != std::string_view::npos)
      reference.config.erase(list, reference.config.find("],", list) + 2 - list);
    const std::size_t at = reference.config.find(c.from);
    REQUIRE(at != std::string::npos);
    reference.config.replace(at, std::string_view(c.from).size(), c.to);
    const test::TempDir folder;
    test::write_model(folder, reference);
    DecoderModel m = DecoderModel::load(folder.path(), for_reference(reference));
    CHECK(logit_error(m.forward(reference.tokens), reference) > 1e-3);
  }
}

TEST_CASE("decoder: parts of joined products are read in place, and blocks are made in the cache") {
  const auto steps = [](const DecoderModel& m, auto wanted) {
    const LirModule& lir = m.program().compile_result().lir;
    return std::count_if(lir.plan.schedule.begin(), lir.plan.schedule.end(),
                         [&](const LirStep& s) { return wanted(lir.graph.node(s.node).kind()); });
  };
  const auto moves = [](OpKind k) { return k == OpKind::Slice || k == OpKind::Reshape || k == OpKind::Transpose; };
  for (const char* name : {"llama2", "mistral", "qwen2", "qwen3", "gemma2", "gemma3", "phi3", "olmo2", "gpt2",
                           "gpt_neox", "gpt_neox_serial"}) {
    CAPTURE(name);
    CHECK(steps(LoadedReference(name).model(), moves) == 0);
  }
  const test::TempDir folder;
  test::write_model(folder, test::reference_of_wide_heads());
  DecoderOptions o;
  o.context = 48;
  for (const QuantScheme scheme : {QuantScheme::Q8_0, QuantScheme::Q4_0}) {
    o.cache_scheme = scheme;
    const DecoderModel m = DecoderModel::load(folder.path(), o);
    CHECK(steps(m, moves) == 0);
    CHECK(steps(m, [](OpKind k) { return k == OpKind::Quantize; }) == 0);
    CHECK(m.program().compile_result().fusion.fused_count("encode_in_place") == 6);  // of three layers
  }
}

TEST_CASE("decoder: rows of q, k and v that are brought in order stay in the dtype of the file") {
  DecoderReference narrow = decoder_reference("gpt_neox"), wide = narrow;
  for (std::size_t i = 0; i < narrow.weights.size(); ++i) {
    narrow.weights[i].tensor = narrow.weights[i].tensor.cast(DType::BF16);
    wide.weights[i].tensor = narrow.weights[i].tensor.cast(DType::F32);
  }
  const test::TempDir narrow_folder, wide_folder;
  test::write_model(narrow_folder, narrow), test::write_model(wide_folder, wide);
  DecoderModel m = DecoderModel::load(narrow_folder.path(), for_reference(narrow));
  DecoderModel exact = DecoderModel::load(wide_folder.path(), for_reference(wide));
  const Graph& prepare = m.program().compile_result().lir.prepare;
  std::size_t packed = 0;
  for (const Node& n : prepare.nodes()) {
    if (n.kind() != OpKind::Relayout) continue;
    ++packed;
    CHECK(prepare.shape(n.inputs[0]).dtype() == DType::BF16);
  }
  CHECK(packed == 4 * 3 + 1);  // of three layers, and the output matrix
  CHECK(test::relative_error(m.forward(narrow.tokens), exact.forward(wide.tokens)) <= kNear);
}

TEST_CASE("decoder: weights in shards, and GPT-2's names without their prefix") {
  DecoderReference reference = decoder_reference("gpt2");
  for (NamedTensor& w : reference.weights) w.name = w.name.substr(std::string_view("transformer.").size());
  reference.weights.push_back({"h.0.attn.bias", Tensor::zeros(Shape({1, 1, 4, 4}, DType::F32))});
  const test::TempDir folder;
  test::write_model(folder, reference, 3);
  DecoderModel m = DecoderModel::load(folder.path(), {.context = 48});
  CHECK(logit_error(m.forward(reference.tokens), reference) <= kNear);
}

TEST_CASE("decoder: a tensor missing, too many or of another shape is named") {
  const DecoderReference good = decoder_reference("llama2");
  const auto message = [&](const auto& spoil) {
    DecoderReference bad = good;
    spoil(bad);
    const test::TempDir folder;
    test::write_model(folder, bad);
    return error_text([&] { (void)DecoderModel::load(folder.path()); });
  };
  const auto named = [](DecoderReference& r, const std::string& name) {
    return std::find_if(r.weights.begin(), r.weights.end(), [&](const NamedTensor& w) { return w.name == name; });
  };
  const std::string norm = "model.layers.1.input_layernorm.weight";
  CHECK(contains(message([&](DecoderReference& r) { r.weights.erase(named(r, norm)); }),
                 "1 tensor is missing: '" + norm + "'"));
  std::string text =
      message([&](DecoderReference& r) { named(r, norm)->name = "model.layers.1.input_layer_norm.weight"; });
  CHECK(contains(text, "1 tensor belongs to no part of a llama of 3 layers: 'model.layers.1.input_layer_norm.weight'"));
  CHECK(contains(text, "did you mean 'model.layers.1.input_layer_norm.weight'?"));
  text = message([&](DecoderReference& r) { named(r, norm)->tensor = Tensor::zeros(Shape({47}, DType::F32)); });
  CHECK(contains(text, "'" + norm + "' is [47], expected [48]"));
  text = message([&](DecoderReference& r) { named(r, norm)->tensor = Tensor::zeros(Shape({48}, DType::I64)); });
  CHECK(contains(text, "'" + norm + "' holds i64, expected floats"));
  text = message([&](DecoderReference& r) {
    r.weights.push_back({"model.layers.0.self_attn.q_proj.bias", Tensor::zeros(Shape({64}, DType::F32))});
  });
  CHECK(contains(text, "belongs to no part of a llama of 3 layers: 'model.layers.0.self_attn.q_proj.bias'"));
  // All at once, and no more than the context.
  text = message([&](DecoderReference& r) { r.weights.resize(4); });
  CHECK(contains(text, "26 tensors are missing: "));
  CHECK(contains(text, "..."));
  CHECK(text.size() < 2000);
  const auto layers = [&](const char* count) {
    return message([&](DecoderReference& r) {
      const std::string key = "\"num_hidden_layers\":3";
      r.config.replace(r.config.find(key), key.size(), std::string("\"num_hidden_layers\":") + count);
    });
  };
  CHECK(contains(layers("1000"), "30 tensors, but a llama of 1000 layers has at least 1000"));
  // Heads that need a cache larger than any memory: the weights are checked first.
  text = message([&](DecoderReference& r) {
    const std::string key = "\"head_dim\":16";
    r.config.replace(r.config.find(key), key.size(), "\"head_dim\":1048576");
  });
  CHECK(contains(text, "'model.layers.0.self_attn.q_proj.weight' is [64, 48], expected [4194304, 48]"));
  CHECK(contains(layers("4"), "9 tensors are missing: 'model.layers.3."));
  CHECK(contains(layers("2"), "9 tensors belong to no part of a llama of 2 layers: 'model.layers.2."));
}

}  // namespace rlx
