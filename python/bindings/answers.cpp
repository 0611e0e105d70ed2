// Answers of language models: iterators over their pieces.
#include "python/bindings/language_model.h"
#include "python/bindings/runtime.h"
#include "python/bindings/text.h"

namespace rlx::python {

void finish(PyAnswer& a) {
  const nb::gil_scoped_release free;
  while (a.next()) a.check_signals();
}

namespace {

nb::object finish_reason(const PyAnswer& a) {
  const FinishReason reason = a.finish();
  return reason == FinishReason::None ? nb::none() : text_object(finish_reason_name(reason));
}

nb::object logprobs_object(const PyAnswer& a) {
  std::vector<double> values;
  for (const TokenLogprobs& l : a.logprobs()) values.push_back(l.drawn);
  const auto n = static_cast<std::int64_t>(values.size());
  return nb::module_::import_("numpy").attr("array")(array_object(Tensor::of<double>({n}, values)));
}
nb::list top_logprobs(const PyAnswer& a) {
  nb::list out;
  for (const TokenLogprobs& l : a.logprobs()) {
    nb::list row;
    for (const TokenLogprob& t : l.likeliest) row.append(nb::make_tuple(t.id, t.logprob));
    out.append(row);
  }
  return out;
}

}  // namespace

void bind_answers(nb::module_& m) {
  nb::class_<PyAnswer>(m, "Answer",
                       "An answer as it comes: an iterator over pieces of text. All answers of a model that are not at "
                       "their end run together, whichever is asked. One that nobody holds, or that is closed, ends.")
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__",
           [](PyAnswer& a) {
             std::optional<std::string> piece;
             {
               const nb::gil_scoped_release free;
               piece = a.next();
             }
             if (!piece) throw nb::stop_iteration();
             return text_object(*piece);
           })
      .def(
          "finish",
          [](nb::handle self) {
            PyAnswer& a = nb::cast<PyAnswer&>(self);
            finish(a);
            if (const std::optional<Diagnostic> problem = a.problem()) throw Error(*problem);
            return nb::borrow(self);
          },
          "Runs to the end; gives the answer itself. Raises the error of one that failed.")
      .def(
          "close",
          [](PyAnswer& a) {
            const nb::gil_scoped_release free;
            a.close();
          },
          "Ends the answer where it is.")
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def(
          "__exit__",
          [](PyAnswer& a, nb::args) {
            const nb::gil_scoped_release free;
            a.close();
          },
          nb::arg("args"))
      .def_prop_ro(
          "text", [](const PyAnswer& a) { return text_object(a.text()); }, "The pieces so far, as one text.")
      .def_prop_ro(
          "tokens", [](const PyAnswer& a) { return ids_object(a.tokens()); },
          "The tokens so far, a NumPy array [T] int32; the one that ended the answer is among them.")
      .def_prop_ro("logprobs", &logprobs_object,
                   "With the option logprobs: how likely each token was to the model alone, before penalties, "
                   "temperature, cuts and grammar: natural logarithms, a NumPy array [T] float64; without it [0].")
      .def_prop_ro("top_logprobs", &top_logprobs,
                   "With the option logprobs=N: for each token a list of the N likeliest, (token, logarithm of its "
                   "probability), the likeliest first.")
      .def_prop_ro("finish_reason", &finish_reason,
                   "None while it goes on; \"stop_token\", \"stop_string\", \"max_tokens\", \"context_full\", "
                   "\"grammar_end\" (its grammar allows nothing more), \"cancelled\" or \"failed\".")
      .def_prop_ro(
          "error",
          [](const PyAnswer& a) {
            const std::optional<Diagnostic> problem = a.problem();
            return problem ? exception_of(Error(*problem)) : nb::none();
          },
          "The rlx.Error of an answer that failed, which iterating and finish() raise; else None.")
      .def_prop_ro(
          "prompt_tokens", [](const PyAnswer& a) { return a.prompt().size(); }, "How many tokens the prompt has.")
      .def_prop_ro(
          "sequence", [](const PyAnswer& a) { return ids_object(a.sequence()); },
          "The tokens of the prompt and the answer, without the one that ended it: a prompt that goes on.")
      .def("__repr__", [](const PyAnswer& a) {
        const FinishReason reason = a.finish();
        return concat_text("<rlx answer of ", a.tokens().size(), " tokens, ",
                           reason == FinishReason::None ? "going on" : finish_reason_name(reason), ">");
      });
}

}  // namespace rlx::python
