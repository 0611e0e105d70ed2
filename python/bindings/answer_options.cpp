// Options of answers by name, and samplers, which take the options of sampling.
#include "python/bindings/answer_options.h"

#include <functional>
#include <map>

#include "python/bindings/grammars.h"
#include "python/bindings/text.h"

namespace rlx::python {
namespace {

struct AnswerOption {
  const char* takes;
  std::function<void(GenerationOptions&, nb::handle)> set;
};
template <class T>
AnswerOption sampling_number(T SamplingOptions::*field) {
  const char* takes = !std::is_integral_v<T>  ? "a number"
                      : sizeof(T) == 4        ? "an integer of 32 bits"
                      : std::is_unsigned_v<T> ? "an integer from 0 to 2^64 - 1"
                                              : "an integer of 64 bits";
  return {takes, [field](GenerationOptions& o, nb::handle v) {
            if (PyUnicode_Check(v.ptr())) throw nb::cast_error();
            o.sampling.*field = nb::cast<T>(v);
          }};
}

std::vector<std::string> stops_from(nb::handle v) {
  if (PyUnicode_Check(v.ptr()) || PyBytes_Check(v.ptr())) return {text_from(v, "stop")};
  std::vector<std::string> out;
  for (nb::handle s : nb::cast<nb::sequence>(v)) out.push_back(text_from(s, "stop"));
  return out;
}
// None: no grammar.
template <class F>
void set_grammar(GenerationOptions& o, nb::handle given, F&& make) {
  if (given.is_none()) return;
  if (o.grammar)
    raise(ErrorCode::InvalidArgument, "an answer cannot follow both grammar and json_schema", "give one of them");
  o.grammar = make();
}
std::vector<SamplingStep> order_from(nb::handle v) {
  if (PyUnicode_Check(v.ptr())) return parse_sampling_order(text_from(v, "order"));
  std::string joined;
  for (nb::handle s : nb::cast<nb::sequence>(v))
    joined += concat_text(joined.empty() ? "" : ";", text_from(s, "order"));
  return parse_sampling_order(joined);
}

const std::map<std::string, AnswerOption, std::less<>>& answer_options() {
  using S = SamplingOptions;
  static const std::map<std::string, AnswerOption, std::less<>> options = {
      {"temperature", sampling_number(&S::temperature)},
      {"dynamic_range", sampling_number(&S::dynamic_range)},
      {"dynamic_exponent", sampling_number(&S::dynamic_exponent)},
      {"top_k", sampling_number(&S::top_k)},
      {"top_p", sampling_number(&S::top_p)},
      {"min_p", sampling_number(&S::min_p)},
      {"typical_p", sampling_number(&S::typical_p)},
      {"top_n_sigma", sampling_number(&S::top_n_sigma)},
      {"xtc_probability", sampling_number(&S::xtc_probability)},
      {"xtc_threshold", sampling_number(&S::xtc_threshold)},
      {"penalty_window", sampling_number(&S::penalty_window)},
      {"repetition_penalty", sampling_number(&S::repetition_penalty)},
      {"frequency_penalty", sampling_number(&S::frequency_penalty)},
      {"presence_penalty", sampling_number(&S::presence_penalty)},
      {"dry_multiplier", sampling_number(&S::dry_multiplier)},
      {"dry_base", sampling_number(&S::dry_base)},
      {"dry_allowed_length", sampling_number(&S::dry_allowed_length)},
      {"dry_window", sampling_number(&S::dry_window)},
      {"dry_breakers",
       {"tokens",
        [](GenerationOptions& o, nb::handle v) { o.sampling.dry_breakers = tokens_from(v, "dry_breakers"); }}},
      {"mirostat", sampling_number(&S::mirostat)},
      {"mirostat_tau", sampling_number(&S::mirostat_tau)},
      {"mirostat_eta", sampling_number(&S::mirostat_eta)},
      {"logit_bias",
       {"{token: number}",
        [](GenerationOptions& o, nb::handle v) {
          o.sampling.logit_bias.clear();
          for (const auto [token, bias] : nb::cast<nb::dict>(v))
            o.sampling.logit_bias.emplace_back(token_from(token, "logit_bias"), nb::cast<float>(bias));
        }}},
      {"order",
       {"names of steps, in a list or joined by ';'",
        [](GenerationOptions& o, nb::handle v) { o.sampling.order = order_from(v); }}},
      {"seed", sampling_number(&S::seed)},
      {"grammar",
       {"GBNF or an rlx.models.Grammar",
        [](GenerationOptions& o, nb::handle v) { set_grammar(o, v, [&] { return grammar_from(v); }); }}},
      {"json_schema",
       {"a dict or a JSON text",
        [](GenerationOptions& o, nb::handle v) {
          // A model cannot fill an answer with blanks.
          set_grammar(o, v, [&] { return schema_grammar_from(v, {.max_whitespace = 1}); });
        }}},
      {"adapter",
       {"the name of one, or None",
        [](GenerationOptions& o, nb::handle v) {
          if (!v.is_none() && !PyUnicode_Check(v.ptr())) throw nb::cast_error();
          o.adapter = v.is_none() ? "" : text_from(v, "adapter");
        }}},
      {"logprobs",
       {"how many of the likeliest tokens, or None",
        [](GenerationOptions& o, nb::handle v) {
          o.logprobs = v.is_none() ? -1 : nb::cast<std::int32_t>(v);
          if (!v.is_none() && o.logprobs < 0)
            raise(ErrorCode::InvalidArgument, concat_text("logprobs must be 0 or more, got ", o.logprobs),
                  "None: no log-probabilities are kept");
        }}},
      {"max_new_tokens",
       {"an integer of 64 bits",
        [](GenerationOptions& o, nb::handle v) { o.max_new_tokens = nb::cast<std::int64_t>(v); }}},
      {"stop", {"a text or a list of texts", [](GenerationOptions& o, nb::handle v) { o.stop = stops_from(v); }}},
      {"stop_tokens",
       {"tokens", [](GenerationOptions& o, nb::handle v) { o.stop_tokens = tokens_from(v, "stop_tokens"); }}},
  };
  return options;
}

}  // namespace

void set_answer_options(GenerationOptions& out, nb::dict given) {
  for (const auto [key, value] : given) {
    const auto name = text_from(key, "the name of an option");
    const auto& known = answer_options();
    const auto it = known.find(name);
    if (it == known.end()) {
      std::vector<std::string> names;
      for (const auto& [n, option] : known) names.push_back(n);
      // Other libraries say max_tokens, max_length or n_predict.
      const bool length = name.find("tokens") != std::string::npos || name == "max_length" || name == "n_predict";
      const std::string other = length ? "did you mean 'max_new_tokens'?" : quoted_names(names, 40);
      PyErr_SetString(
          PyExc_TypeError,
          concat_text("there is no option '", name, "' of an answer; ", did_you_mean(name, names, other)).c_str());
      throw nb::python_error();
    }
    try {
      it->second.set(out, value);
    } catch (const nb::cast_error&) {
      raise(ErrorCode::DTypeMismatch, concat_text(name, " takes ", it->second.takes, ", got ", described(value)));
    }
  }
}

void share_grammar(nb::dict options) {
  nb::dict grammars;
  for (const char* name : {"grammar", "json_schema"}) {
    if (!options.contains(name)) continue;
    grammars[name] = options[name];
    nb::del(options[name]);
  }
  GenerationOptions read;
  set_answer_options(read, grammars);
  if (read.grammar) options["grammar"] = nb::cast(*read.grammar);
}

namespace {

SamplingOptions sampling_options(nb::dict given) {
  for (const char* other : {"max_new_tokens", "stop", "stop_tokens", "grammar", "json_schema", "adapter", "logprobs"}) {
    if (!given.contains(other)) continue;
    PyErr_SetString(
        PyExc_TypeError,
        concat_text("Sampler: ", other, " is an option of LanguageModel.generate and not of a Sampler").c_str());
    throw nb::python_error();
  }
  GenerationOptions out;
  set_answer_options(out, given);
  return out.sampling;
}

// The logits of one token, [V] or [1, V], as f32.
Tensor one_row(nb::handle h) {
  Tensor t = on_host(tensor_from(h, "logits"));
  const bool row = t.rank() == 1 || (t.rank() == 2 && t.dim(0) == 1);
  if (!row || !is_float(t.dtype()) || is_storage_only(t.dtype()))
    raise(ErrorCode::ShapeMismatch,
          concat_text("logits of one token must be floats [V] or [1, V], got ", t.shape().text()),
          "use one row: logits[-1]");
  return t.cast(DType::F32);
}

nb::tuple probabilities_of(Sampler& s, nb::handle logits) {
  const Tensor row = one_row(logits);
  const std::vector<TokenChance> left = s.chances(row.values<float>());
  std::vector<TokenId> ids;
  std::vector<float> probabilities;
  for (const TokenChance& c : left) ids.push_back(c.id), probabilities.push_back(c.probability);
  const auto n = static_cast<std::int64_t>(left.size());
  return nb::make_tuple(ids_object(ids), nb::module_::import_("numpy").attr("array")(
                                             array_object(Tensor::of<float>({n}, probabilities))));
}

}  // namespace

void bind_answer_options(nb::module_& m) {
  nb::class_<Sampler>(m, "Sampler",
                      "Samples tokens from logits, as LanguageModel.generate does. Options are the sampling options of "
                      "generate. A Sampler keeps the tokens so far, which penalties and random keys depend on. Only "
                      "one thread may use it at a time.")
      .def(
          "__init__", [](Sampler* self, nb::kwargs options) { new (self) Sampler(sampling_options(options)); },
          nb::arg("options"), nb::sig("def __init__(self, **options: object) -> None"))
      .def(
          "draw", [](Sampler& s, nb::handle logits) { return s.draw(one_row(logits).values<float>()); },
          nb::arg("logits").none(),
          "Samples the next token from logits [V] or [1, V]. accept() appends it to the sequence.")
      .def("probabilities", &probabilities_of, nb::arg("logits").none(),
           "(ids, probabilities) of the tokens that top_k, top_p and the other cuts leave: NumPy arrays, the likeliest "
           "token first.")
      .def(
          "chances",
          [](Sampler& s, nb::handle logits) {
            warn_renamed("Sampler.chances()", "probabilities()");
            return probabilities_of(s, logits);
          },
          nb::arg("logits").none(), "Deprecated: probabilities().")
      .def(
          "accept",
          [](Sampler& s, nb::handle tokens) {
            if (PyIndex_Check(tokens.ptr()) && !PySequence_Check(tokens.ptr()))
              s.accept(token_from(tokens, "accept"));
            else
              s.accept(tokens_from(tokens, "accept"));
          },
          nb::arg("tokens").none(), "Appends one token, or the tokens of a prompt, to the sequence.")
      .def(
          "rewind",
          [](Sampler& s, std::int64_t count) {
            if (count < 0)
              raise(ErrorCode::InvalidArgument, concat_text("rewind: count must be 0 or more, got ", count));
            s.rewind(static_cast<std::size_t>(count));
          },
          nb::arg("count"), "Removes the last `count` tokens from the sequence.")
      .def_prop_ro(
          "sequence", [](const Sampler& s) { return ids_object(s.sequence()); },
          "The tokens of the sequence so far, a NumPy array [T] int32.");
  m.def("answer_options", [] {
    std::vector<std::string> names;
    for (const auto& [name, option] : answer_options()) names.push_back(name);
    return names;
  });
}

}  // namespace rlx::python
