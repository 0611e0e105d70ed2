// Compiled grammars in Python.
#include "python/bindings/grammars.h"

#include "python/bindings/text.h"

namespace rlx::python {
namespace {

bool is_text(nb::handle h) { return PyUnicode_Check(h.ptr()) || PyBytes_Check(h.ptr()); }

Grammar from_gbnf(const std::string& text, const std::string& root) {
  const nb::gil_scoped_release free;
  return Grammar::from_gbnf(text, "grammar", root);
}

JsonWhitespace whitespace_named(const std::string& name) {
  if (name == "none") return JsonWhitespace::None;
  if (name == "spaced") return JsonWhitespace::Spaced;
  if (name == "flexible") return JsonWhitespace::Flexible;
  raise(ErrorCode::InvalidArgument, concat_text("whitespace '", name, "' is not one of none, spaced and flexible"));
}

}  // namespace

Grammar grammar_from(nb::handle h) {
  if (nb::isinstance<Grammar>(h)) return nb::cast<Grammar>(h);
  if (!is_text(h)) throw nb::cast_error();
  return from_gbnf(text_from(h, "grammar"), "root");
}

Grammar schema_grammar_from(nb::handle h, const JsonSchemaOptions& form) {
  if (!is_text(h) && !PyDict_Check(h.ptr()) && !PyBool_Check(h.ptr())) throw nb::cast_error();
  const std::string schema = is_text(h) ? text_from(h, "json_schema") : json_text_from(h, "json_schema");
  const nb::gil_scoped_release free;
  return json_schema_grammar(schema, form, "json_schema");
}

void bind_grammars(nb::module_& m) {
  nb::class_<Grammar>(m, "Grammar",
                      "A compiled grammar in GBNF, for any number of answers of any model. The rule `root` describes "
                      "the whole text. docs/grammars.md has the format.")
      .def(
          "__init__",
          [](Grammar* self, nb::handle text, const std::string& root) {
            new (self) Grammar(from_gbnf(text_from(text, "grammar"), root));
          },
          nb::arg("text").none(), nb::arg("root") = "root")
      .def_static(
          "json_schema",
          [](nb::handle schema, const std::string& whitespace, std::int64_t max_whitespace, bool closed) {
            if (max_whitespace < 0 || max_whitespace > UINT32_MAX)
              raise(ErrorCode::InvalidArgument,
                    concat_text("max_whitespace must be in [0, 2^32 - 1], got ", max_whitespace));
            try {
              return schema_grammar_from(
                  schema, {whitespace_named(whitespace), static_cast<std::uint32_t>(max_whitespace), closed});
            } catch (const nb::cast_error&) {
              raise(ErrorCode::DTypeMismatch,
                    concat_text("json_schema takes a dict or a JSON text, got ", described(schema)));
            }
          },
          nb::arg("schema").none(), nb::kw_only(), nb::arg("whitespace") = "flexible", nb::arg("max_whitespace") = 64,
          nb::arg("closed") = false,
          "A grammar of the JSON texts that a schema (a dict or a JSON text) allows; {} allows all. whitespace: "
          "\"none\", \"spaced\" as json.dumps writes it, or \"flexible\", up to max_whitespace characters between "
          "tokens. closed: objects have only the properties that the schema names.")
      .def(
          "matches",
          [](const Grammar& g, nb::handle text) {
            const std::string s = text_from(text, "matches");
            const nb::gil_scoped_release free;
            return g.matches(s);
          },
          nb::arg("text").none(), "True if the grammar describes this text.")
      .def("__repr__", [](const Grammar& g) {
        return concat_text("<rlx grammar of ", g.num_rules(), " rules, ", g.num_states(), " states>");
      });
}

}  // namespace rlx::python
