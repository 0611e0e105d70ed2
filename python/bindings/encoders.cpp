// Text encoders in Python: sentence embeddings and rerankers.
#include "python/bindings/hub.h"
#include "python/bindings/runtime.h"
#include "python/bindings/text.h"
#include "rlx/models/reranker.h"
#include "rlx/models/sentence_encoder.h"
#include "rlx/models/text_index.h"

namespace rlx::python {
namespace {

struct PyEncoder {
  SentenceEncoder encoder;
};
struct PyReranker {
  Reranker reranker;
};
struct PyTextIndex {
  TextIndex index;
};

std::vector<std::string> texts_from(nb::handle h, const std::string& what) {
  if (PyUnicode_Check(h.ptr()) || PyBytes_Check(h.ptr()) || !PySequence_Check(h.ptr()))
    raise(ErrorCode::DTypeMismatch, concat_text(what, " must be a list of texts, got ", described(h)));
  std::vector<std::string> out;
  for (nb::handle text : nb::borrow<nb::sequence>(h))
    out.push_back(text_from(text, concat_text(what, ": text ", out.size() + 1)));
  return out;
}

// The options that both models have.
template <class Options>
Options encoder_options(int threads, std::int64_t max_batch, std::int64_t max_sequence, const std::string& device,
                        nb::handle device_options) {
  Options o;
  o.num_threads = threads;
  o.max_batch = max_batch;
  o.max_sequence = max_sequence;
  o.device = device_from(device);
  o.device_options = device_options_from(device_options);
  return o;
}

// The prompt that is put before every text; the default prompt of the model if none is chosen.
std::string chosen_prompt(const PyEncoder& e, nb::handle prompt, nb::handle name) {
  if (!prompt.is_none() && !name.is_none())
    raise(ErrorCode::InvalidArgument, "embed: both prompt and prompt_name are given", "give one of them");
  if (!prompt.is_none()) return text_from(prompt, "embed: prompt");
  return e.encoder.prompt(name.is_none() ? std::string() : text_from(name, "embed: prompt_name"));
}

nb::object embed(PyEncoder& e, nb::handle texts, nb::handle prompt, nb::handle prompt_name) {
  const bool single = PyUnicode_Check(texts.ptr());
  const std::vector<std::string> list =
      single ? std::vector<std::string>{text_from(texts, "embed: text")} : texts_from(texts, "embed: texts");
  const std::string before = chosen_prompt(e, prompt, prompt_name);
  Tensor out;
  {
    const nb::gil_scoped_release free;
    const CtrlC interruptible(true);
    out = e.encoder.embed(list, nullptr, nullptr, nullptr, before);
    if (single) out = out.reshaped({out.dim(1)});
  }
  return array_object(std::move(out));
}

std::optional<ScoreActivation> activation_from(nb::handle h) {
  if (h.is_none()) return std::nullopt;
  const std::string name = text_from(h, "Reranker: activation");
  if (name == "identity") return ScoreActivation::Identity;
  if (name == "sigmoid") return ScoreActivation::Sigmoid;
  raise(ErrorCode::InvalidArgument, concat_text("activation '", name, "' is not one of identity and sigmoid"));
}

// A path that exists.
std::string text_path_from(nb::handle h) {
  std::filesystem::path path;
  if (!nb::try_cast(h, path))
    raise(ErrorCode::DTypeMismatch, concat_text("update: paths must be paths, got ", described(h)));
  return existing(path);
}

// One path, or a list of them.
std::vector<std::string> text_paths_from(nb::handle h) {
  if (PyUnicode_Check(h.ptr()) || PyBytes_Check(h.ptr()) || !PySequence_Check(h.ptr())) return {text_path_from(h)};
  std::vector<std::string> out;
  for (nb::handle path : nb::borrow<nb::sequence>(h)) out.push_back(text_path_from(path));
  return out;
}

PassageKind passage_kind_from(const std::string& name) {
  for (const PassageKind kind : {PassageKind::Lines, PassageKind::Paragraphs, PassageKind::Chunks})
    if (passage_kind_name(kind) == name) return kind;
  raise(ErrorCode::InvalidArgument,
        concat_text("update: passages '", name, "' is not one of lines, paragraphs, chunks"));
}

DType vector_type_from(const std::string& name) {
  if (name == "f16") return DType::F16;
  if (name == "int8") return DType::I8;
  raise(ErrorCode::InvalidArgument, concat_text("update: vectors '", name, "' is not one of f16 and int8"));
}

nb::dict update_index(const std::filesystem::path& path, nb::handle paths, PyEncoder& encoder, nb::handle globs,
                      bool hidden, bool ignore_files, const std::string& passages, std::int64_t max_tokens,
                      std::int64_t overlap, const std::string& vectors, bool check_content) {
  TextIndexOptions o;
  o.files.globs = texts_from(globs, "update: globs");
  o.files.hidden = hidden, o.files.ignore_files = ignore_files;
  o.passages = passage_kind_from(passages);
  o.chunks.max_tokens = max_tokens, o.chunks.overlap = overlap;
  o.vectors = vector_type_from(vectors), o.check_content = check_content;
  const std::vector<std::string> roots = text_paths_from(paths);
  TextIndexUpdate done;
  {
    const nb::gil_scoped_release free;
    const CtrlC interruptible(true);
    done = update_text_index(path.string(), roots, encoder.encoder, o);
  }
  nb::dict out;
  out["files"] = done.files, out["added"] = done.added, out["changed"] = done.changed, out["removed"] = done.removed;
  out["passages"] = done.passages, out["embedded"] = done.embedded, out["written"] = done.written;
  nb::list left_out;
  for (const LeftOutFile& file : done.left_out) left_out.append(text_object(file.why.message));
  out["left_out"] = left_out;
  out["rebuilt"] = text_object(done.rebuilt);
  return out;
}

nb::list search_index(const PyTextIndex& self, PyEncoder& encoder, nb::handle query, std::int64_t count) {
  const std::string asked = text_from(query, "search: the query");
  if (count < 0) raise(ErrorCode::InvalidArgument, concat_text("search: count must be 0 or more, got ", count));
  std::vector<IndexMatch> found;
  {
    const nb::gil_scoped_release free;
    const CtrlC interruptible(true);
    found = self.index.search(encoder.encoder, asked, static_cast<std::size_t>(count));
  }
  nb::list out;
  for (const IndexMatch& match : found) {
    nb::list places;
    for (const PassagePlace& place : match.places)
      places.append(nb::make_tuple(
          nb::steal(PyUnicode_DecodeFSDefaultAndSize(place.file.data(), static_cast<Py_ssize_t>(place.file.size()))),
          place.line));
    nb::dict entry;
    entry["score"] = match.score, entry["text"] = text_object(match.text), entry["places"] = places;
    out.append(entry);
  }
  return out;
}

}  // namespace

void bind_encoders(nb::module_& m) {
  nb::class_<PyEncoder>(
      m, "SentenceEncoder",
      "Sentence embeddings from a Hugging Face model folder, or a model's name on a hub (docs/embeddings.md, "
      "docs/hub.md). dimensions: the number of elements kept of each vector, for models that were trained for it; 0: "
      "all.")
      .def(
          "__init__",
          [](PyEncoder* self, const std::filesystem::path& path, int threads, std::int64_t max_batch,
             std::int64_t max_sequence, std::int64_t dimensions, bool zero_empty, const std::string& device,
             nb::handle device_options) {
            auto o = encoder_options<SentenceEncoderOptions>(threads, max_batch, max_sequence, device, device_options);
            o.dimensions = dimensions;
            o.zero_empty = zero_empty;
            const std::string folder = existing_model(path);
            const nb::gil_scoped_release free;
            new (self) PyEncoder{SentenceEncoder(folder, o)};
          },
          nb::arg("folder"), nb::kw_only(), nb::arg("threads") = 0, nb::arg("max_batch") = 32,
          nb::arg("max_sequence") = 0, nb::arg("dimensions") = 0, nb::arg("zero_empty") = false,
          nb::arg("device") = "cpu", nb::arg("device_options") = nb::none())
      .def("embed", &embed, nb::arg("texts").none(), nb::kw_only(), nb::arg("prompt") = nb::none(),
           nb::arg("prompt_name") = nb::none(),
           "Embeds texts: float32 [texts, hidden_size] for a list, [hidden_size] for one text. `prompt`, or the prompt "
           "of the model with this name, or else its default prompt, is put before every text.")
      .def_prop_ro(
          "hidden_size", [](PyEncoder& e) { return e.encoder.hidden_size(); }, "The length of a vector.")
      .def_prop_ro(
          "max_sequence", [](PyEncoder& e) { return e.encoder.max_sequence(); },
          "The largest number of tokens of a text; longer texts are cut.")
      .def_prop_ro(
          "prompts",
          [](PyEncoder& e) {
            nb::dict out;
            for (const auto& [name, text] : e.encoder.config().prompts) out[text_object(name)] = text_object(text);
            return out;
          },
          "The prompts of the model, name -> text.")
      .def_prop_ro(
          "query_prompt", [](PyEncoder& e) { return text_object(e.encoder.query_prompt()); },
          "The prompt for queries; it may be empty.")
      .def_prop_ro(
          "passage_prompt", [](PyEncoder& e) { return text_object(e.encoder.passage_prompt()); },
          "The prompt for passages; it may be empty.");
  nb::class_<PyReranker>(
      m, "Reranker",
      "A reranker: a cross-encoder from a Hugging Face model folder, or by its name on a hub, that scores "
      "how well passages answer a query (docs/embeddings.md). activation: \"sigmoid\" or \"identity\"; None: the one "
      "of the model. instruction: the task, for rerankers of the Qwen3 family.")
      .def(
          "__init__",
          [](PyReranker* self, const std::filesystem::path& path, int threads, std::int64_t max_batch,
             std::int64_t max_sequence, nb::handle activation, nb::handle instruction, const std::string& device,
             nb::handle device_options) {
            auto o = encoder_options<RerankerOptions>(threads, max_batch, max_sequence, device, device_options);
            o.activation = activation_from(activation);
            if (!instruction.is_none()) o.instruction = text_from(instruction, "Reranker: instruction");
            const std::string folder = existing_model(path);
            const nb::gil_scoped_release free;
            new (self) PyReranker{Reranker(folder, o)};
          },
          nb::arg("folder"), nb::kw_only(), nb::arg("threads") = 0, nb::arg("max_batch") = 32,
          nb::arg("max_sequence") = 0, nb::arg("activation") = nb::none(), nb::arg("instruction") = nb::none(),
          nb::arg("device") = "cpu", nb::arg("device_options") = nb::none())
      .def(
          "score",
          [](PyReranker& r, nb::handle query, nb::handle passages) {
            const std::string asked = text_from(query, "score: the query");
            const std::vector<std::string> list = texts_from(passages, "score: passages");
            Tensor out;
            {
              const nb::gil_scoped_release free;
              const CtrlC interruptible(true);
              out = r.reranker.score(asked, list);
            }
            return array_object(std::move(out));
          },
          nb::arg("query").none(), nb::arg("passages").none(),
          "The scores of the query with each passage, in order: float32 [passages, labels].")
      .def(
          "rank",
          [](PyReranker& r, nb::handle query, nb::handle passages, nb::handle count) {
            const std::string asked = text_from(query, "rank: the query");
            const std::vector<std::string> list = texts_from(passages, "rank: passages");
            const auto most =
                count.is_none() ? static_cast<std::int64_t>(list.size()) : cast_as<std::int64_t>(count, "rank: count");
            if (most < 0) raise(ErrorCode::InvalidArgument, concat_text("rank: count must be 0 or more, got ", most));
            std::vector<Match> best;
            {
              const nb::gil_scoped_release free;
              const CtrlC interruptible(true);
              best = r.reranker.rank(asked, list, static_cast<std::size_t>(most));
            }
            nb::list out;
            for (const Match& match : best) out.append(nb::make_tuple(match.index, match.score));
            return out;
          },
          nb::arg("query").none(), nb::arg("passages").none(), nb::arg("count") = nb::none(),
          "The passages by score, the best first: a list of (index, score), cut to `count` entries. The model needs "
          "one label.")
      .def_prop_ro(
          "labels", [](PyReranker& r) { return r.reranker.labels(); }, "The number of scores for a pair.")
      .def_prop_ro(
          "max_sequence", [](PyReranker& r) { return r.reranker.max_sequence(); },
          "The largest number of tokens of a query and a passage together; longer pairs are cut.");
  nb::class_<PyTextIndex>(
      m, "TextIndex",
      "An index of the passages in text files, which `update` makes: their texts and vectors in one "
      "mapped file (docs/embeddings.md).")
      .def(
          "__init__",
          [](PyTextIndex* self, const std::filesystem::path& path) {
            const std::string file = existing(path);
            const nb::gil_scoped_release free;
            new (self) PyTextIndex{TextIndex::open(file)};
          },
          nb::arg("path"))
      .def_static("update", &update_index, nb::arg("path"), nb::arg("paths").none(), nb::arg("encoder"), nb::kw_only(),
                  nb::arg("globs") = nb::make_tuple(), nb::arg("hidden") = false, nb::arg("ignore_files") = true,
                  nb::arg("passages") = "chunks", nb::arg("max_tokens") = 256, nb::arg("overlap") = 32,
                  nb::arg("vectors") = "f16", nb::arg("check_content") = false,
                  "Writes the index of the text in `paths`, files and folders, to the file `path`. Of an index that is "
                  "there, what did not change is kept: only new passages are embedded. passages: \"chunks\" of at most "
                  "max_tokens tokens that share `overlap` of them, \"lines\" or \"paragraphs\". globs: patterns as in "
                  ".gitignore files; those with '!' leave files out. vectors: \"f16\" or \"int8\". check_content: also "
                  "reads files whose size and times are unchanged. Returns what was done, as a dict.")
      .def("search", &search_index, nb::arg("encoder"), nb::arg("query").none(), nb::arg("count") = 5,
           "The passages closest to the query, the best first: dicts with score (the cosine), text, and places, a list "
           "of (file, line). The encoder has the model that the index was made with.")
      .def_prop_ro(
          "num_files", [](PyTextIndex& i) { return i.index.num_files(); }, "The number of files.")
      .def_prop_ro(
          "num_passages", [](PyTextIndex& i) { return i.index.num_passages(); }, "The number of different passages.")
      .def_prop_ro(
          "model", [](PyTextIndex& i) { return text_object(i.index.model()); },
          "The folder of the model when the index was made.");
}

}  // namespace rlx::python
