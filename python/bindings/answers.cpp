// Answers of language models: iterators over chunks of text.
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
  nb::class_<PyAnswer>(
      m, "Answer",
      "An answer while it is generated: an iterator over chunks of text. All unfinished answers of a model run "
      "together, whichever of them is iterated. Closing an answer, or dropping the last reference to it, cancels it.")
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
          "Runs the answer to its end and returns it. Raises the error of an answer that failed.")
      .def(
          "close",
          [](PyAnswer& a) {
            const nb::gil_scoped_release free;
            a.close();
          },
          "Cancels the answer.")
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def(
          "__exit__",
          [](PyAnswer& a, nb::args) {
            const nb::gil_scoped_release free;
            a.close();
          },
          nb::arg("args"))
      .def_prop_ro(
          "text", [](const PyAnswer& a) { return text_object(a.text()); }, "The text so far.")
      .def_prop_ro(
          "tokens", [](const PyAnswer& a) { return ids_object(a.tokens()); },
          "The tokens so far, a NumPy array [T] int32. It includes the token that ended the answer.")
      .def_prop_ro(
          "logprobs", &logprobs_object,
          "With the option logprobs: the log-probability of each token under the model alone, before penalties, "
          "temperature, top_k and other cuts, and the grammar. A NumPy array [T] float64; [0] without the option.")
      .def_prop_ro("top_logprobs", &top_logprobs,
                   "With the option logprobs=N: for each token a list of the N likeliest tokens, (token, "
                   "log-probability), the likeliest first.")
      .def_prop_ro("finish_reason", &finish_reason,
                   "None while the answer runs, then \"stop_token\", \"stop_string\", \"max_tokens\", "
                   "\"context_full\", \"grammar_end\" (the grammar allows nothing more), \"cancelled\" or \"failed\".")
      .def_prop_ro(
          "error",
          [](const PyAnswer& a) {
            const std::optional<Diagnostic> problem = a.problem();
            return problem ? exception_of(Error(*problem)) : nb::none();
          },
          "The rlx.Error of an answer that failed, else None. Iterating and finish() raise it.")
      .def_prop_ro(
          "prompt_tokens", [](const PyAnswer& a) { return a.prompt().size(); }, "The number of tokens in the prompt.")
      .def_prop_ro(
          "sequence", [](const PyAnswer& a) { return ids_object(a.sequence()); },
          "The tokens of the prompt and of the answer, without the token that ended it: a prompt that continues the "
          "text.")
      .def("__repr__", [](const PyAnswer& a) {
        const FinishReason reason = a.finish();
        return concat_text("<rlx answer of ", a.tokens().size(), " tokens, ",
                           reason == FinishReason::None ? "running" : finish_reason_name(reason), ">");
      });
}

}  // namespace rlx::python
