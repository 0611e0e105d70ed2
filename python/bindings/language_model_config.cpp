// LanguageModel.config: the architecture of a language model as a dict.
#include "python/bindings/language_model.h"
#include "python/bindings/text.h"

namespace rlx::python {
namespace {

nb::object optional_number(const std::optional<double>& v) { return v ? nb::object(nb::float_(*v)) : nb::none(); }

nb::dict rope_dict(const RopeSpec& r) {
  nb::dict d;
  d["theta"] = r.theta;
  d["rotated"] = r.rotated;
  d["scaling"] = text_object(rope_scaling_name(r.scaling));
  d["factor"] = r.factor;
  d["original_context"] = r.original_context;
  return d;
}
nb::dict moe_dict(const MoeSpec& s) {
  nb::dict d;
  d["experts"] = s.experts;
  d["used"] = s.used;
  d["ff_size"] = s.ff_size;
  d["shared_ff_size"] = s.shared_ff_size;
  return d;
}

}  // namespace

nb::dict config_dict(const DecoderConfig& c) {
  nb::dict d;
  d["family"] = text_object(c.family);
  d["vocab_size"] = c.vocab_size;
  d["hidden_size"] = c.hidden_size;
  d["ff_size"] = c.ff_size;
  d["num_layers"] = c.layers.size();
  d["num_heads"] = c.num_heads;
  d["kv_heads"] = c.kv_heads;
  d["head_dim"] = c.head_dim;
  d["max_positions"] = c.max_positions;
  d["norm"] = c.norm == NormKind::Rms ? "rms" : "layer";
  d["norm_eps"] = c.norm_eps;
  d["parallel"] = c.parallel;
  d["gated"] = c.gated;
  d["tied"] = c.tied;
  d["attention_softcap"] = optional_number(c.attention_softcap);
  d["logit_softcap"] = optional_number(c.logit_softcap);
  nb::list ropes, layers;
  for (const RopeSpec& r : c.ropes) ropes.append(rope_dict(r));
  for (const DecoderLayer& l : c.layers) {
    nb::dict layer;
    layer["window"] = l.window;
    layer["rope"] = l.rope < 0 ? nb::none() : nb::object(nb::int_(l.rope));
    layer["experts"] = l.moe;
    layers.append(layer);
  }
  d["ropes"] = ropes;
  d["layers"] = layers;
  d["moe"] = c.moe ? nb::object(moe_dict(*c.moe)) : nb::none();
  return d;
}

}  // namespace rlx::python
