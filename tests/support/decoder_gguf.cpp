// Weights of reference decoders in the layout of GGUF's converter.
#include "tests/support/decoder_gguf.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>

#include "rlx/error.h"
#include "rlx/formats/gguf.h"
#include "rlx/formats/json.h"
#include "rlx/formats/safetensors.h"
#include "rlx/models/decoder/gguf_decoder.h"
#include "rlx/models/decoder_config.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/paths.h"

namespace rlx::test {
namespace {

std::shared_ptr<SafetensorsFile> open_reference(const std::string& name) {
  return SafetensorsFile::open(source_path("tests/unit/models/references/" + name + ".safetensors"));
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string numbered(std::string text, std::size_t number) {
  const std::size_t at = text.find("{}");
  return at == std::string::npos ? text : text.replace(at, 2, std::to_string(number));
}

// The converter's changes to the weights of one model.
class Converted {
 public:
  Converted(const DecoderReference& model, const DecoderConfig& from, const DecoderConfig& to) : from_(from), to_(to) {
    for (const NamedTensor& w : model.weights) weights_.emplace(w.name, w.tensor.cast(DType::F32));
    pair(from.names.embedding, to.names.embedding), pair(from.names.positions, to.names.positions);
    pair(from.names.final_norm, to.names.final_norm), pair(from.names.head, to.names.head);
    for (std::size_t i = 0; i < from.layers.size(); ++i) {
      const std::string a = numbered(from.names.layer, i), b = numbered(to.names.layer, i);
      for (std::string DecoderNames::*part : {&DecoderNames::q,
                                              &DecoderNames::k,
                                              &DecoderNames::v,
                                              &DecoderNames::qkv,
                                              &DecoderNames::o,
                                              &DecoderNames::q_norm,
                                              &DecoderNames::k_norm,
                                              &DecoderNames::attention_norm,
                                              &DecoderNames::attention_post_norm,
                                              &DecoderNames::ff_norm,
                                              &DecoderNames::ff_post_norm,
                                              &DecoderNames::gate,
                                              &DecoderNames::up,
                                              &DecoderNames::gate_up,
                                              &DecoderNames::down,
                                              &DecoderNames::router,
                                              &DecoderNames::q_a,
                                              &DecoderNames::q_a_norm,
                                              &DecoderNames::q_b,
                                              &DecoderNames::kv_a,
                                              &DecoderNames::kv_a_norm,
                                              &DecoderNames::shared_gate,
                                              &DecoderNames::shared_up,
                                              &DecoderNames::shared_down})
        if (!(from.names.*part).empty() && !(to.names.*part).empty()) pair(a + from.names.*part, b + to.names.*part);
      names_[b + to.names.sinks] = a + from.names.sinks;
    }
  }

  std::vector<float> values(const GgufTensor& t) const {
    const std::string name(t.name);
    if (name.find("_exps.") != std::string::npos) return experts(name);
    if (name.find(".attn_k_b.") != std::string::npos) return latent(name, true);
    if (name.find(".attn_v_b.") != std::string::npos) return latent(name, false);
    const auto at = names_.find(name);
    if (at == names_.end()) throw Error(ErrorCode::InvalidArgument, "no weight is called " + name);
    const Tensor& w = weights_.at(at->second);
    std::vector<float> x(w.values<float>().begin(), w.values<float>().end());
    const bool is_bias = name.ends_with(".bias");
    if (from_.norm_offset != 0 && name.find("norm") != std::string::npos)
      for (float& v : x) v += static_cast<float>(from_.norm_offset);
    if (from_.weights_in_out && !is_bias && w.rank() == 2 && name.starts_with("blk."))
      x = transposed(x, w.dim(0), w.dim(1));
    const bool turned = !to_.mla && !to_.ropes.empty() && to_.ropes[0].pairing != from_.ropes[0].pairing;
    if (turned && name.find(".attn_q.") != std::string::npos) x = in_pairs(x, from_.num_heads);
    if (turned && name.find(".attn_k.") != std::string::npos) x = in_pairs(x, from_.kv_heads);
    if (from_.qkv_layout == QkvLayout::Heads && name.find(".attn_qkv.") != std::string::npos) x = in_parts(x);
    return x;
  }

 private:
  void pair(const std::string& from, const std::string& to) {
    for (const char* end : {".weight", ".bias"}) names_[to + end] = from + end;
  }
  static std::vector<float> transposed(const std::vector<float>& x, std::int64_t rows, std::int64_t columns) {
    std::vector<float> out;
    for (std::int64_t c = 0; c < columns; ++c)
      for (std::int64_t r = 0; r < rows; ++r) out.push_back(x[static_cast<std::size_t>(r * columns + c)]);
    return out;
  }
  // Reorders rows (head, half, i) to (head, i, half).
  std::vector<float> in_pairs(const std::vector<float>& x, std::int64_t heads) const {
    const auto half = static_cast<std::size_t>(from_.head_dim) / 2,
               width = x.size() / static_cast<std::size_t>(heads) / half / 2;
    std::vector<float> out;
    for (std::size_t h = 0; h < static_cast<std::size_t>(heads); ++h)
      for (std::size_t i = 0; i < half; ++i)
        for (std::size_t part = 0; part < 2; ++part) {
          const auto at = static_cast<std::ptrdiff_t>(((h * 2 + part) * half + i) * width);
          out.insert(out.end(), x.begin() + at, x.begin() + at + static_cast<std::ptrdiff_t>(width));
        }
    return out;
  }
  // Reorders rows (head, part, i) to (part, head, i).
  std::vector<float> in_parts(const std::vector<float>& x) const {
    const auto heads = static_cast<std::size_t>(from_.num_heads), block = x.size() / (3 * heads);
    std::vector<float> out;
    for (std::size_t p = 0; p < 3; ++p)
      for (std::size_t h = 0; h < heads; ++h)
        out.insert(out.end(), x.begin() + static_cast<std::ptrdiff_t>((h * 3 + p) * block),
                   x.begin() + static_cast<std::ptrdiff_t>((h * 3 + p + 1) * block));
    return out;
  }
  // The rows of each head are [keys and values, rank]: the keys, transposed, or the values.
  std::vector<float> latent(const std::string& name, bool keys) const {
    const MlaSpec& m = *from_.mla;
    const Tensor& w =
        weights_.at(numbered(from_.names.layer, std::stoul(name.substr(4))) + from_.names.kv_b + ".weight");
    std::vector<float> out;
    for (std::int64_t h = 0; h < from_.num_heads; ++h) {
      const auto at = [&](std::int64_t row, std::int64_t column) {
        out.push_back(static_cast<float>(w.at((h * (m.nope_dim + m.v_dim) + row) * m.kv_rank + column)));
      };
      if (keys)
        for (std::int64_t c = 0; c < m.kv_rank; ++c)
          for (std::int64_t r = 0; r < m.nope_dim; ++r) at(r, c);
      else
        for (std::int64_t r = 0; r < m.v_dim; ++r)
          for (std::int64_t c = 0; c < m.kv_rank; ++c) at(m.nope_dim + r, c);
    }
    return out;
  }
  std::vector<float> experts(const std::string& name) const {
    const std::size_t layer = std::stoul(name.substr(4));
    const std::string prefix = numbered(from_.names.layer, layer);
    const bool is_bias = name.ends_with(".bias"), down = name.find("_down_") != std::string::npos;
    const bool up = name.find("_up_") != std::string::npos;
    const DecoderNames& n = from_.names;
    std::vector<float> out;
    if (from_.moe->layout == ExpertLayout::Apart) {
      const std::string& stem = down ? n.expert_down : up ? n.expert_up : n.expert_gate;
      for (std::size_t e = 0; e < static_cast<std::size_t>(from_.moe->experts); ++e) {
        const Tensor& w = weights_.at(prefix + numbered(stem, e) + ".weight");
        out.insert(out.end(), w.values<float>().begin(), w.values<float>().end());
      }
      return out;
    }
    const Tensor& all = weights_.at(prefix + (down ? n.expert_down : n.expert_gate) + (is_bias ? "_bias" : ""));
    const auto experts = from_.moe->experts, last = all.dim(-1), in = is_bias ? 1 : all.dim(1);
    const float* x = all.values<float>().data();
    for (std::int64_t e = 0; e < experts; ++e)
      for (std::int64_t c = down ? 0 : up ? 1 : 0; c < last; c += down ? 1 : 2)
        for (std::int64_t r = 0; r < in; ++r) out.push_back(x[(e * in + r) * last + c]);
    return out;
  }

  const DecoderConfig &from_, &to_;
  std::map<std::string, Tensor> weights_;
  std::map<std::string, std::string> names_;  // name in the GGUF file -> name in the folder
};

}  // namespace

bool has_gguf(const std::string& name) { return open_reference(name)->find("gguf_head").has_value(); }

std::string decoder_gguf(const DecoderReference& model) {
  const auto file = open_reference(model.name);
  const std::map<std::string, std::string> text(file->metadata().begin(), file->metadata().end());
  const TensorView head = file->at("gguf_head");
  std::string out(static_cast<const char*>(head.data), head.size_bytes);
  out.resize(std::stoul(text.at("gguf_bytes")), '\0');
  const auto gguf = GgufFile::from_bytes(bytes_of(out), model.name + ".gguf");
  const JsonDocument sums = JsonDocument::parse(text.at("gguf_sums"), model.name + ": sums");
  // The rope factors are read with the description, so they come first.
  for (const GgufTensor& t : gguf->tensors())
    if (const auto given = file->find("gguf:" + std::string(t.name)))
      std::memcpy(out.data() + (reinterpret_cast<const char*>(t.bytes.data()) - out.data()), given->data,
                  given->size_bytes);
  const DecoderConfig from = parse_decoder_config(JsonDocument::parse(model.config, "config.json"));
  const DecoderConfig to = read_decoder_config(*gguf);
  const Converted converted(model, from, to);
  for (const GgufTensor& t : gguf->tensors()) {
    if (file->find("gguf:" + std::string(t.name))) continue;
    const std::vector<float> x = converted.values(t);
    if (x.size() * sizeof(float) != t.bytes.size())
      throw Error(ErrorCode::ShapeMismatch, std::string(t.name) + " has another size");
    std::uint64_t sum = 0xcbf29ce484222325U;  // FNV-1a of the bytes
    const auto* raw = reinterpret_cast<const unsigned char*>(x.data());
    for (std::size_t i = 0; i < t.bytes.size(); ++i) sum = (sum ^ raw[i]) * 0x100000001b3U;
    if (std::to_string(sum) != sums.root().get_string(std::string(t.name)))
      throw Error(ErrorCode::BadFile, model.name + ": the converter makes other bytes of " + std::string(t.name));
    std::memcpy(out.data() + (reinterpret_cast<const char*>(t.bytes.data()) - out.data()), x.data(), t.bytes.size());
  }
  return out;
}

std::string with_blocks(const std::string& f32, QuantScheme scheme) {
  const auto from = GgufFile::from_bytes(bytes_of(f32), "f32");
  const BlockLayout& layout = block_layout(scheme);
  GgufBytes out;
  for (const GgufValue& v : from->metadata())
    out.value(v.key(), v.kind(), std::string(reinterpret_cast<const char*>(v.raw().data()), v.raw().size()));
  for (const GgufTensor& t : from->tensors()) {
    const bool encoded = t.dims.size() >= 2 && t.dims.back() % layout.elements == 0;
    out.data.append((32 - out.data.size() % 32) % 32, '\0');
    std::vector<std::uint64_t> dims(t.dims.rbegin(), t.dims.rend());
    out.records += gguf_string(t.name) + number_bytes(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t d : dims) out.records += number_bytes(d);
    out.records += number_bytes(static_cast<std::uint32_t>(encoded ? gguf_type_of(scheme) : t.type)) +
                   number_bytes(static_cast<std::uint64_t>(out.data.size()));
    ++out.tensors;
    if (!encoded) {
      out.data.append(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size());
      continue;
    }
    const std::span<const float> x(reinterpret_cast<const float*>(t.bytes.data()), t.bytes.size() / sizeof(float));
    std::string blocks(x.size() / static_cast<std::size_t>(layout.elements) * static_cast<std::size_t>(layout.bytes),
                       '\0');
    quantize_blocks(scheme, x, std::as_writable_bytes(std::span(blocks)));
    out.data += blocks;
  }
  return out.bytes();
}

}  // namespace rlx::test
