// Language models with saved packed weights: later starts find them and give the same logits, and never use those of
// other weights or damaged files.
#include <doctest/doctest.h>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "rlx/formats/mapped_file.h"
#include "rlx/formats/packed_weight_files.h"
#include "rlx/models/decoder_model.h"
#include "tests/support/decoder_gguf.h"
#include "tests/support/decoder_reference.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;
namespace fs = std::filesystem;

struct FormsStart {
  Tensor logits;
  std::size_t found = 0, saved = 0, prepared = 0;
  std::vector<std::string> problems;
};
FormsStart start_with(const std::string& model, const DecoderOptions& options,
                      const std::vector<TokenId>& tokens = {3, 1, 4, 1, 5, 9, 2, 6}) {
  DecoderModel m = DecoderModel::load(model, options);
  FormsStart out;
  out.logits = m.forward(tokens);
  out.prepared = m.program().prepared_bytes();
  CHECK((m.packed_weights() == nullptr) == options.packed_weights.empty());
  if (!m.packed_weights()) return out;
  out.found = m.packed_weights()->found_bytes(), out.saved = m.packed_weights()->saved_bytes();
  out.problems = m.packed_weights()->problems();
  return out;
}

std::vector<std::string> packed_below(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

// The reference model with one weight changed.
void write_changed(const test::TempDir& folder, test::DecoderReference reference) {
  for (NamedTensor& w : reference.weights)
    if (contains(w.name, "down_proj")) w.tensor.set(0, static_cast<double>(w.tensor.to_f32()[0]) + 1);
  test::write_model(folder, reference);
}

DecoderOptions with_packed_layouts(const std::string& folder) {
  DecoderOptions o;
  o.context = 64, o.packed_weights = folder;
  return o;
}

}  // namespace

TEST_CASE("packed weight files of a language model: the second start maps what the first one made, bit for bit") {
  const test::DecoderReference reference = test::reference_of_wide_heads();
  const test::TempDir dir, folder;
  test::write_model(folder, reference);
  const std::string f32 = test::decoder_gguf(test::decoder_reference("llama2"));
  std::vector<std::string> models{folder.path()};
  for (const QuantScheme scheme : {QuantScheme::Q8_0, QuantScheme::Q4_0, QuantScheme::Q4_K})
    models.push_back(dir.write(concat_text("m", models.size(), ".gguf"), test::with_blocks(f32, scheme)));
  for (const std::string& model : models)
    for (const MatmulPrecision precision : {MatmulPrecision::Exact, MatmulPrecision::BF16, MatmulPrecision::Int8}) {
      CAPTURE(model);
      CAPTURE(std::string(matmul_precision_name(precision)));
      const test::TempDir forms;
      DecoderOptions o = with_packed_layouts(""), with = with_packed_layouts(forms.file("forms"));
      o.matmul_precision = with.matmul_precision = precision;
      const FormsStart plain = start_with(model, o), first = start_with(model, with), second = start_with(model, with);
      CHECK(first.found == 0);
      CHECK(first.saved > 0);
      CHECK(first.logits.identical(plain.logits));
      CHECK(second.found == first.saved);
      CHECK(second.saved == 0);
      CHECK(second.logits.identical(plain.logits));
      CHECK(second.prepared + second.found <= first.prepared + 64);
      CHECK(second.prepared < first.prepared);
      CHECK((first.problems.empty() && second.problems.empty()));
      with.verify_packed_weights = true;
      const FormsStart verified = start_with(model, with);
      CHECK(verified.found == first.saved);
      CHECK(verified.logits.identical(plain.logits));
    }
}

TEST_CASE("packed weight files of a language model: one folder for several models and several kinds of products") {
  const test::DecoderReference reference = test::decoder_reference("llama2");
  const test::TempDir a, b, forms;
  test::write_model(a, reference);
  write_changed(b, reference);
  const DecoderOptions o = with_packed_layouts(forms.path()), none = with_packed_layouts("");
  DecoderOptions int8 = o;
  int8.matmul_precision = MatmulPrecision::Int8;
  const FormsStart first = start_with(a.path(), o), other = start_with(b.path(), o), third = start_with(a.path(), int8);
  CHECK((first.found == 0 && other.found == 0 && third.found == 0));
  CHECK_FALSE(first.logits.identical(other.logits));
  for (int again = 0; again < 2; ++again) {
    CHECK(start_with(a.path(), o).found == first.saved);
    CHECK(start_with(b.path(), o).found == other.saved);
    CHECK(start_with(b.path() + "/", o).found == other.saved);
    CHECK(start_with(a.path(), int8).found == third.saved);
  }
  CHECK(start_with(b.path(), o).logits.identical(start_with(b.path(), none).logits));
}

TEST_CASE("packed weight files of a language model: of a checkpoint in several files") {
  const test::DecoderReference reference = test::decoder_reference("llama2");
  const test::TempDir model, forms;
  test::write_model(model, reference, 5);
  const DecoderOptions o = with_packed_layouts(forms.path());
  const FormsStart first = start_with(model.path(), o), second = start_with(model.path(), o);
  CHECK(first.saved > 0);
  CHECK(second.found == first.saved);
  CHECK(second.prepared + first.saved <= first.prepared + 64);
  CHECK(second.logits.identical(first.logits));
  // Every file of the model is checked.
  for (const auto& entry : fs::directory_iterator(model.path())) {
    if (entry.path().extension() != ".safetensors") continue;
    fs::last_write_time(entry.path(), fs::last_write_time(entry.path()) + std::chrono::seconds(3));
    const FormsStart touched = start_with(model.path(), o);
    CHECK(touched.found == first.saved);
    CHECK(touched.saved > 0);
    CHECK(start_with(model.path(), o).saved == 0);
  }
}

TEST_CASE("packed weight files of a language model: other weights in the same file are not the old ones") {
  const test::DecoderReference reference = test::decoder_reference("llama2");
  const test::TempDir model, forms;
  test::write_model(model, reference);
  const DecoderOptions o = with_packed_layouts(forms.path()), none = with_packed_layouts("");
  const FormsStart old = start_with(model.path(), o);
  const std::vector<std::string> files = packed_below(forms.path());
  // A touched file: the same weights are found by their content once, and by the file time from then on.
  const std::string weights = model.file("model.safetensors");
  const auto now = fs::last_write_time(weights);
  fs::last_write_time(weights, now + std::chrono::seconds(5));
  const FormsStart touched = start_with(model.path(), o);
  CHECK(touched.found == old.saved);
  CHECK(touched.logits.identical(old.logits));
  CHECK(start_with(model.path(), o).saved == 0);
  // Another file of the same size, with another time.
  write_changed(model, reference);
  fs::last_write_time(weights, now + std::chrono::seconds(9));
  const FormsStart changed = start_with(model.path(), o);
  CHECK(changed.found > 0);  // the unchanged matrices are found
  CHECK(changed.found < old.saved);
  CHECK_FALSE(changed.logits.identical(old.logits));
  CHECK(changed.logits.identical(start_with(model.path(), none).logits));
  const FormsStart after = start_with(model.path(), o);
  CHECK((after.found == old.saved && after.saved == 0));
  CHECK(after.logits.identical(changed.logits));
  CHECK(packed_below(forms.path()) == files);  // they replace the old ones
  CHECK(changed.problems.empty());
}

TEST_CASE("packed weight files of a language model: damaged and foreign files are told, and made anew") {
  const test::TempDir model, forms;
  test::write_model(model, test::decoder_reference("llama2"));
  DecoderOptions o = with_packed_layouts(forms.path());
  const FormsStart first = start_with(model.path(), o);
  const std::vector<std::string> files = packed_below(forms.path());
  REQUIRE(files.size() > 4);
  fs::resize_file(files[0], fs::file_size(files[0]) - 1);
  std::ofstream(files[1]) << "some other text";
  fs::copy_file(files[3], files[2], fs::copy_options::overwrite_existing);
  FormsStart again = start_with(model.path(), o);
  CHECK(again.logits.identical(first.logits));
  REQUIRE(again.problems.size() == 2);
  std::sort(again.problems.begin(), again.problems.end(),
            [](const std::string& l, const std::string& r) { return contains(l, "cut short") && !contains(r, "cut"); });
  CHECK(contains(again.problems[0], concat_text(files[0], "\" is cut short")));
  CHECK(contains(again.problems[1], concat_text(files[1], "\" is not a packed weight file")));
  CHECK(again.found < first.saved);
  CHECK(start_with(model.path(), o).problems.empty());
  CHECK(start_with(model.path(), o).found == first.saved);
  // Bytes that changed while the file time did not: only a check of the contents finds them.
  std::string bytes = read_file(files[4]);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file(files[4], bytes);
  o.verify_packed_weights = true;
  const FormsStart verified = start_with(model.path(), o);
  CHECK(verified.logits.identical(first.logits));
  REQUIRE(verified.problems.size() == 1);
  CHECK(contains(verified.problems[0], concat_text(files[4], "\" has a wrong checksum")));
  CHECK(start_with(model.path(), o).problems.empty());
}

TEST_CASE("packed weight files of a language model: a folder that cannot be made, and a disk that is full") {
  const test::TempDir model, dir;
  test::write_model(model, test::decoder_reference("llama2"));
  for (const std::string& place : {dir.write("file", "x"), dir.file("file/below")}) {
    const auto refused =
        attempt([&] { return DecoderModel::load(model.path(), with_packed_layouts(place)).context(); });
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::NotFound);
    CHECK(contains(refused.error().message, "folder of packed weights"));
    CHECK(contains(refused.error().message, place));
  }
  // A limit on file sizes stands for a full disk.
  const DecoderOptions o = with_packed_layouts(dir.file("full"));
  const FormsStart plain = start_with(model.path(), with_packed_layouts(""));
  FormsStart full;
  {
    struct rlimit was {};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &was) == 0);
    struct rlimit none = was;
    none.rlim_cur = 16;
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
    const std::string failed = error_text([&] { full = start_with(model.path(), o); });
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &was) == 0);
    std::signal(SIGXFSZ, handler);
    CHECK_MESSAGE(failed.empty(), failed);
  }
  CHECK(full.logits.identical(plain.logits));
  CHECK((full.saved == 0 && full.found == 0));
  REQUIRE(full.problems.size() == 1);  // not one per packed weight
  CHECK(contains(full.problems[0], "packed weights are no longer saved: cannot write"));
  CHECK(contains(full.problems[0], "File too large"));
  CHECK(packed_below(dir.file("full")).empty());  // no partial file is left
  const FormsStart later = start_with(model.path(), o);
  CHECK(later.saved > 0);
  CHECK(start_with(model.path(), o).found == later.saved);
}

TEST_CASE("packed weight files of a language model: truncated in use, the next run fails") {
  const test::TempDir model, forms;
  test::write_model(model, test::decoder_reference("llama2"));
  const DecoderOptions o = with_packed_layouts(forms.path());
  (void)start_with(model.path(), o);
  DecoderModel m = DecoderModel::load(model.path(), o);
  const std::vector<TokenId> tokens{3, 1, 4};
  const Tensor before = m.forward(tokens);
  std::string largest;
  for (const std::string& file : packed_below(forms.path()))
    if (largest.empty() || fs::file_size(file) > fs::file_size(largest)) largest = file;
  REQUIRE(fs::file_size(largest) > 3 * 4096);
  fs::resize_file(largest, 4096);
  m.reset();
  const std::string said = error_text([&] { (void)m.forward(tokens); });
  CHECK_MESSAGE(contains(said, concat_text("\"", largest, "\" was made shorter")), said);
  CHECK(DecoderModel::load(model.path(), o).forward(tokens).identical(before));
}

}  // namespace rlx
