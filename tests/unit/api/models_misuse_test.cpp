// Misuse of file formats, tokenizers and models.
#include <cmath>
#include <functional>
#include <limits>

#include "rlx/base/sigbus_guard.h"
#include "rlx/formats/gguf.h"
#include "rlx/formats/gguf_writer.h"
#include "rlx/formats/json.h"
#include "rlx/formats/npy.h"
#include "rlx/formats/packed_weight_files.h"
#include "rlx/formats/safetensors.h"
#include "rlx/models/convert/model_convert.h"
#include "rlx/models/encoder.h"
#include "rlx/models/passages.h"
#include "rlx/models/reranker.h"
#include "rlx/models/sentence_encoder.h"
#include "rlx/models/text_files.h"
#include "rlx/models/text_index.h"
#include "rlx/runtime/session.h"
#include "rlx/tensor/block_search.h"
#include "rlx/text/chat_template.h"
#include "rlx/text/stream_decoder.h"
#include "rlx/text/wordpiece.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/paths.h"
#include "tests/support/tiny_model.h"
#include "tests/unit/api/misuse.h"

using namespace rlx;

namespace {
const std::string kNowhere = "/no_such_folder/file";
using rlx::test::kHigh;
}  // namespace

TEST_CASE("misuse: json") {
  REFUSED("", JsonDocument::parse("", ""));
  REFUSED("f.json", JsonDocument::parse(std::string_view(), "f.json"));
  REFUSED("f.json", JsonDocument::parse(std::string(100000, '['), "f.json"));
  REFUSED(kNowhere, JsonDocument::read(kNowhere));
  JsonDocument d = JsonDocument::parse(R"({"a": 1, "huge": 18446744073709551615, "n": null})", "f.json");
  const JsonValue v = d.root(), a = v.at("a");
  REFUSED("f.json", a.as_bool("a"));
  std::string_view none[1];
  REFUSED("f.json", a.read_strings("a", none));
  REFUSED("f.json", JsonDocument::parse("[1]", "f.json").root().read_strings("a", none));
  REFUSED("f.json", JsonDocument::parse("[]", "f.json").root().read_strings("a", none));
  CHECK(a.size() == 0);
  REFUSED("f.json", a.as_string("a"));
  REFUSED("f.json", v.as_int("root"));
  REFUSED("f.json", v.as_number("root"));
  REFUSED("f.json", a.members("a"));
  REFUSED("f.json", a.elements("a"));
  REFUSED("missing key \"b\"", v.at("b"));
  REFUSED("missing key \"\"", v.at(""));
  REFUSED("expected an object", a.at("b"));
  REFUSED("f.json", v.get_bool("a"));
  REFUSED("f.json", v.get_bool("a", true));
  REFUSED("larger than a 64-bit", v.get_int("huge"));
  REFUSED("larger than a 64-bit", v.get_int("huge", 3));
  REFUSED("f.json", v.get_number("n"));
  REFUSED("f.json", v.get_string("a"));
  REFUSED("f.json", v.get_string("a", "x"));
  CHECK(v.get_int("n", 3) == 3);
  CHECK_FALSE(a.find("b").has_value());
  CHECK_FALSE(v.find("").has_value());
  CHECK(a.kind() == JsonKind::Integer);
  CHECK_FALSE(json_kind_name(static_cast<JsonKind>(77)).empty());
  REFUSED("f.json", JsonDocument::parse("[]", "f.json").root_object());
  JsonDocument moved = std::move(d);
  // NOLINTBEGIN(bugprone-use-after-move)
  REFUSED("a JsonDocument was used after it was moved from", d.root());
  REFUSED("a JsonDocument was used after it was moved from", d.root_object());
  REFUSED("a JsonDocument was used after it was moved from", d.source());
  d = std::move(moved);  // operator=
  // NOLINTEND(bugprone-use-after-move)
  CHECK(d.source() == "f.json");

  const auto thrown = [](const std::function<void(JsonWriter&)>& use) {
    return test::error_text([&] {
      JsonWriter w;
      use(w);
    });
  };
  CHECK_FALSE(thrown([](JsonWriter& w) { w.end_object(); }).empty());
  CHECK_FALSE(thrown([](JsonWriter& w) { w.end_array(); }).empty());
  CHECK_FALSE(thrown([](JsonWriter& w) { w.begin_object().end_array(); }).empty());
  CHECK_FALSE(thrown([](JsonWriter& w) { (void)w.begin_array().take(); }).empty());
  CHECK_FALSE(thrown([](JsonWriter& w) { w.value(std::nan("")); }).empty());
  CHECK_FALSE(thrown([](JsonWriter& w) { w.value(INFINITY); }).empty());
  CHECK_FALSE(thrown([](JsonWriter& w) { w.begin_object().member("x", -INFINITY); }).empty());
  CHECK(JsonWriter(-3).begin_object().key("").value("\xff").end_object().take().size() > 4);
  CHECK(JsonWriter().null().flush() == "null");
  CHECK(JsonWriter().begin_array().raw("").raw("1").end_array().take() == "[1]");  // raw text is not checked
  CHECK(JsonWriter(JsonStyle{.decimals = 1000}).value(0.5).take() == "0.5");
}

TEST_CASE("misuse: files") {
  const test::TempDir dir;
  REFUSED(kNowhere, MappedFile::open(kNowhere));
  REFUSED(dir.path(), MappedFile::open(dir.path()));
  REFUSED("", MappedFile::open(""));
  guard_mapping(nullptr);
  GuardedReads::check(nullptr);
  GuardedReads::check_readable(nullptr, 0);
  GuardedReads::check_readable(&dir, sizeof dir);
  CHECK_FALSE(damaged_file_at(nullptr));
  CHECK_FALSE(changed_file_at(&dir));
  REFUSED(kNowhere, rlx::read_file(kNowhere));
  REFUSED(kNowhere, write_file(kNowhere, "x"));
  REFUSED(dir.path(), write_file(dir.path(), "x"));
  REFUSED("", write_file("", "x"));
  REFUSED("cannot open \"f\"", fail_file("f", "open", 0));
  REFUSED("cannot open", fail_file("", "open", -1));
  CHECK_FALSE(is_file(""));
  CHECK_FALSE(has_file(kNowhere));
  REFUSED("is a folder", has_file(dir.path()));
  CHECK(join_path("", "").empty());
  MappedFile f = MappedFile::open(dir.write("a", "text")), taken = std::move(f);
  // NOLINTBEGIN(bugprone-use-after-move)
  for (const MappedFile* gone : {static_cast<const MappedFile*>(&f), static_cast<const MappedFile*>(new MappedFile)}) {
    CHECK(gone->bytes().empty());
    CHECK(gone->text().empty());
    CHECK(gone->size() == 0);
    CHECK(gone->status().size == 0);
    gone->advise(MapAdvice::WillNeed);
    gone->drop_pages(0, 100);
    if (gone != &f) delete gone;
  }
  taken.advise(static_cast<MapAdvice>(77));
  taken.drop_pages(~std::size_t{0}, ~std::size_t{0});
  taken.drop_pages(1, ~std::size_t{0});
  CHECK(taken.text() == "text");
  f = std::move(taken);  // operator=
  // NOLINTEND(bugprone-use-after-move)
  CHECK(f.path() == dir.file("a"));
}

TEST_CASE("misuse: arrays of NumPy") {
  const test::TempDir dir;
  const Tensor one = Tensor::scalar(DType::F32, 1);
  REFUSED(kNowhere, read_npy(kNowhere));
  REFUSED("bytes", parse_npy({}, "bytes"));
  REFUSED("bf16", npy_header(DType::BF16, {}));
  REFUSED("77 is not a DType", npy_header(static_cast<DType>(77), {}));
  REFUSED("an empty tensor", npy_bytes(Tensor()));
  REFUSED("an empty tensor", write_npy(dir.file("a"), Tensor()));
  REFUSED(kNowhere, write_npy(kNowhere, one));
  REFUSED(kNowhere, read_npz(kNowhere));
  REFUSED("bytes", parse_npz({}, "bytes"));
  REFUSED("is empty", write_npz(dir.file("a"), std::vector<NamedTensor>{{"a", Tensor()}}));
  REFUSED("", write_npz(dir.file("a"), std::vector<NamedTensor>{{"", one}}));
  REFUSED("\"a\"", write_npz(dir.file("a"), std::vector<NamedTensor>{{"a", one}, {"a", one}}));
}

TEST_CASE("misuse: packed weight files") {
  const test::TempDir dir;
  REFUSED("folder of packed weights", PackedWeightFiles(dir.write("file", "x")));
  REFUSED("folder of packed weights", PackedWeightFiles(""));
  PackedWeightFiles files(dir.file("forms"));
  files.save("", {}, {}, "");
  const auto content = [] { return std::string(); };
  CHECK(files.find("", 0, {}, content).num_elements() == 0);
  CHECK(files.find("", 1, {}, content).empty());  // an entry without bytes
  CHECK(files.find("line\nkey other", 1, {}, content).empty());
  CHECK(files.path_of("") != files.path_of("a"));
  CHECK(files.problems().size() == 1);
  CHECK(files.mapped().size() == 1);
  CHECK((files.found_bytes() == 0 && files.saved_bytes() == 0));
}

TEST_CASE("misuse: gguf") {
  REFUSED(kNowhere, GgufFile::open(kNowhere));
  REFUSED("memory", GgufFile::from_bytes({}, "memory"));
  REFUSED("no file was given", GgufFile::tensor(nullptr, "a"));
  const std::shared_ptr<const GgufFile> f = GgufFile::open(test::source_path("tests/fuzz/corpus/gguf/mixed.gguf"));
  for (const char* name : {"b", "", "t.u8"}) {
    CHECK_FALSE(f->find(name).has_value());
    CHECK(f->find_tensor(name) == nullptr);
    CHECK_FALSE(f->identity(name).has_value());
    f->drop_pages(name, 3, ~std::size_t{0});
    REFUSED("has no tensor", f->at(name));
    REFUSED("has no tensor", f->decoded(name));
    REFUSED("has no tensor", GgufFile::tensor(f, name));
  }
  f->drop_pages("plain", ~std::size_t{0}, ~std::size_t{0});
  f->drop_pages("plain", 3, ~std::size_t{0});
  REFUSED("tensors of type I32 cannot be decoded", f->decoded("ids"));
  CHECK(f->names().size() == 5);
  CHECK(f->find_value("") == nullptr);
  REFUSED("has no key \"\"", f->value(""));
  REFUSED("is string, expected bool", f->get_bool("t.string"));
  REFUSED("is string, expected bool", f->get_bool("t.string", true));
  REFUSED("is f32, expected an integer", f->get_int("t.f32"));
  REFUSED("is f32, expected an integer", f->get_int("t.f32", 1));
  REFUSED("is bool, expected a number", f->get_number("t.bool"));
  REFUSED("is bool, expected a number", f->get_number("t.bool", 1));
  REFUSED("is u8, expected a string", f->get_string("t.u8"));
  REFUSED("is u8, expected a string", f->get_string("t.u8", ""));
  const GgufValue& v = f->value("t.u8");
  REFUSED("expected bool", v.as_bool());
  REFUSED("expected a string", v.as_string());
  REFUSED("expected an array", v.element_kind());
  REFUSED("expected an array", v.size());
  REFUSED("expected an array", v.strings());
  REFUSED("expected an array", v.ints());
  REFUSED("expected an array", v.floats());
  REFUSED("expected an array", v.elements());
  const GgufValue& list = f->value("t.strings");
  REFUSED("array of string, expected an integer", list.as_int());
  REFUSED("array of string, expected a number", list.as_number());
  REFUSED("expected an array of numbers", list.floats());
  const GgufValue none;
  REFUSED("no file", none.as_int());
  REFUSED("no file", none.as_number());
  REFUSED("has no key \"general.architecture\"",
          GgufFile::from_bytes(std::as_bytes(std::span("GGUF\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24)), "m")
              ->architecture());
  const auto type = static_cast<GgufType>(99);
  REFUSED("99", gguf_type_info(type));
  REFUSED("99", (GgufTensor{"t", type, {}, {}, {}}.info()));
  REFUSED("99", decode_gguf(type, {}, {}));
  REFUSED("99", gguf_kind_name(static_cast<GgufKind>(99)));
  REFUSED("affine", gguf_type_of(QuantScheme::Affine));
  CHECK_FALSE(gguf_type_of_number(99).has_value());
  CHECK_FALSE(parse_gguf_type("Q9_9").has_value());
  std::vector<std::byte> bytes(35);
  std::vector<float> numbers(32);
  REFUSED("35 bytes do not hold 32 elements", decode_gguf(GgufType::Q8_0, bytes, numbers));
  decode_gguf(GgufType::Q8_0, {}, {});
}

TEST_CASE("misuse: gguf writer") {
  const test::TempDir dir;
  GgufWriter w(dir.file("w.gguf"));
  const auto kind = static_cast<GgufKind>(99);
  const std::vector<std::int64_t> dims{32}, odd{31}, negative{-1}, beyond{kHigh};
  REFUSED("power of two", GgufWriter(dir.file("w.gguf"), GgufWriter::Options{0}));
  REFUSED("1 to 65535", w.set_bool("", true));
  REFUSED("99", w.set_int("a", kind, 1));
  REFUSED("does not fit in u8", w.set_int("a", GgufKind::U8, -1));
  REFUSED("99", w.set_number("a", kind, 1));
  REFUSED("1 to 65535", w.set_string("\xff", ""));
  REFUSED("1 to 65535", w.set_strings("", {}));
  REFUSED("99", w.set_ints("a", kind, {}));
  REFUSED("1 to 65535", w.set_floats("", {}));
  REFUSED("set GgufWriter::Options::alignment", w.set_int("general.alignment", GgufKind::U32, 64));
  REFUSED("no file", w.copy(GgufValue()));
  CHECK_FALSE(w.has(""));
  REFUSED("99", w.add_tensor("t", static_cast<GgufType>(99), dims));
  REFUSED("multiple of 32", w.add_tensor("t", GgufType::Q8_0, odd));
  REFUSED("negative", gguf_size_bytes(GgufType::F32, negative));
  REFUSED("any file", gguf_size_bytes(GgufType::F32, beyond));
  REFUSED("after begin()", w.write({}));
  REFUSED("after begin()", w.commit());
  w.add_tensor("t", GgufType::Q8_0, dims);
  REFUSED("twice", w.add_tensor("t", GgufType::Q8_0, dims));
  w.begin();
  REFUSED("before begin()", w.begin());
  REFUSED("have not been written", w.commit());
  REFUSED("after the last tensor", w.write(std::vector<std::byte>(35)));
  REFUSED(kNowhere, GgufWriter(kNowhere).begin());
  REFUSED(kNowhere, convert_to_gguf(kNowhere, dir.file("x.gguf"), {}));
  REFUSED(kNowhere, convert_to_folder(kNowhere, dir.file("x"), {}));
  REFUSED("config.json", convert_to_gguf(dir.path(), dir.file("x.gguf"), {}));
  std::vector<std::byte> bytes(18);
  std::vector<float> numbers(32), weights(32, -1);
  REFUSED("do not hold", search_blocks(QuantScheme::Q8_0, numbers, {}, bytes));
  REFUSED("a weight is -1", search_blocks(QuantScheme::Q4_0, numbers, weights, bytes));
  REFUSED("99", search_blocks(static_cast<QuantScheme>(99), numbers, {}, bytes));
}

TEST_CASE("misuse: safetensors") {
  const test::TempDir dir;
  const Tensor one = Tensor::scalar(DType::F32, 1);
  REFUSED(kNowhere, SafetensorsFile::open(kNowhere));
  REFUSED("memory", SafetensorsFile::from_bytes({}, "memory"));
  REFUSED("no file was given", SafetensorsFile::tensor(nullptr, "a"));
  REFUSED("is empty", write_safetensors(dir.file("a"), std::vector<NamedTensor>{{"a", Tensor()}}));
  REFUSED("twice", write_safetensors(dir.file("a"), std::vector<NamedTensor>{{"a", one}, {"a", one}}));
  REFUSED("reserves", write_safetensors(dir.file("a"), std::vector<NamedTensor>{{"__metadata__", one}}));
  REFUSED(kNowhere, write_safetensors(kNowhere, std::vector<NamedTensor>{{"a", one}}));
  write_safetensors(dir.file("a"), std::vector<NamedTensor>{{"a", one}});
  const std::shared_ptr<const SafetensorsFile> f = SafetensorsFile::open(dir.file("a"));
  CHECK_FALSE(f->find("b").has_value());
  CHECK_FALSE(f->find("").has_value());
  REFUSED("\"b\"", f->at("b"));
  REFUSED("\"b\"", SafetensorsFile::tensor(f, "b"));
  CHECK_FALSE(f->identity("b").has_value());
  CHECK_FALSE(
      SafetensorsFile::from_bytes(MappedFile::open(dir.file("a")).bytes(), "memory")->identity("a").has_value());
  f->drop_all_pages("b");
  f->drop_pages("b", 3, ~std::size_t{0});
  f->drop_pages("b", ~std::size_t{0}, ~std::size_t{0});
  f->drop_all_pages("");
  CHECK(f->names().size() == 1);
}

TEST_CASE("misuse: tokenisers") {
  const std::string empty_gguf = test::GgufBytes().bytes();
  const test::TinyModel model;
  REFUSED(kNowhere, load_tokenizer(kNowhere));
  REFUSED("", load_tokenizer(""));
  REFUSED("vocab", WordPieceTokenizer::from_vocab("", "vocab"));
  REFUSED("t.json", WordPieceTokenizer::from_json(JsonDocument::parse("{}", "t.json")));
  REFUSED("t.json",
          WordPieceTokenizer::options_from_config(JsonDocument::parse(R"({"do_lower_case": 3})", "t.json").root()));
  const std::unique_ptr<Tokenizer> t = load_tokenizer(model.path());
  REFUSED("UTF-8", t->encode("\xff"));
  const TokenId outside[] = {-1}, beyond[] = {std::numeric_limits<TokenId>::max()};
  REFUSED("-1", t->decode(outside));
  REFUSED("2147483647", t->decode(beyond));
  CHECK(t->decode({}).empty());
  CHECK_FALSE(t->token_to_id("").has_value());
  CHECK_FALSE(t->id_to_token(-1).has_value());
  CHECK_FALSE(t->id_to_token(beyond[0]).has_value());
  REFUSED("leaves no room", t->encode_truncated("a", 2));
  REFUSED("leaves no room", t->encode_pair("a", "b", 3));
  REFUSED("UTF-8", t->encode_pair("a", "\xff"));
  REFUSED("leaves no room", t->join_pair({}, {}, -1));
  CHECK(t->join_pair({}, {}, kHigh).ids.size() == 3);
  REFUSED("leaves no room", t->encode_truncated("a", -1));
  CHECK(t->encode_truncated("a", kHigh, true, nullptr).size() == 3);
  REFUSED("t.json", tokenizer_from_json(JsonDocument::parse("{}", "t.json")));
  REFUSED("tokenizer.ggml.model",
          tokenizer_from_gguf(*GgufFile::from_bytes(std::as_bytes(std::span(empty_gguf)), "m.gguf")));
  StreamDecoder stream(*t);
  REFUSED("-1", stream.push(-1));
  REFUSED("2147483647", stream.push(beyond[0]));
  CHECK(stream.flush().empty());
  const StreamDecoder taken = std::move(stream);
  REFUSED("moved from", stream.push(0));
  REFUSED("moved from", stream.flush());
  WordPieceTokenizer w = WordPieceTokenizer::from_vocab("[PAD]\n[UNK]\n[CLS]\n[SEP]", "v");
  REFUSED("UTF-8", w.normalize("\xff"));
  REFUSED("-1", w.decoded_piece(-1, true));
  const WordPieceTokenizer owner = std::move(w);
  REFUSED("moved from", w.encode("a"));
  REFUSED("moved from", w.vocab_size());
  REFUSED("moved from", w.prefix_ids());
  REFUSED("moved from", w.suffix_ids());
  REFUSED("moved from", w.pad_id());
  REFUSED("moved from", w.pair_pieces());
  REFUSED("moved from", w.decoder());
  REFUSED("moved from", w.added_tokens());
  const std::vector<std::string> texts{"a", "\xff"};
  REFUSED("text 2 of 2", t->encode_batch(texts));
  REFUSED("pad_to_multiple", t->encode_batch(std::span(texts).first(1), BatchOptions{.pad_to_multiple = 0}));
  REFUSED("pad_to_multiple", t->encode_batch(std::span(texts).first(1), BatchOptions{.pad_to_multiple = kHigh}));
  REFUSED("leaves no room", t->encode_batch(std::span(texts).first(1), BatchOptions{.max_length = 1}));
  CHECK(t->encode_batch({}).batch == 0);
  CHECK(EncodedBatch().ids_i64().empty());
  CHECK(EncodedBatch().mask_i64().empty());
  CHECK_FALSE(TruncationNotice().text().empty());
  CHECK_FALSE(TruncationNotice().text("").empty());

  Vocabulary v;
  REFUSED("no token -1", v.add("x", -1));
  REFUSED("no token -1", v.add_hidden("x", -1));
  REFUSED("no token 0", v.token(0));
  REFUSED("no token -5", v.token(-5));
  CHECK_FALSE(v.has(-1));
  CHECK_FALSE(v.has(0));
  CHECK_FALSE(v.find("").has_value());
  v.reserve(0, 0);
  v.add("", 3);
  CHECK(v.find("") == 3);
  REFUSED("no token 2", v.token(2));
}

TEST_CASE("misuse: configurations of models") {
  REFUSED("num_heads must be at least 1, got 0", BertConfig().head_dim());
  REFUSED("", build_sentence_encoder(BertConfig()));
  BertConfig c;
  c.hidden_size = 4, c.num_layers = 1, c.num_heads = 3, c.intermediate_size = 3, c.vocab_size = 8, c.max_positions = 6,
  c.type_vocab_size = 2;
  CHECK_FALSE(test::error_text([&] { (void)build_sentence_encoder(c); }).empty());
  c.num_heads = 2;
  BertGraphOptions longer, negative, no_dtype, ids, pooling;
  longer.sequence = 7;
  negative.batch = -1;
  no_dtype.dtype = static_cast<DType>(77);
  ids.ids = DType::F32;
  pooling.pooling = static_cast<Pooling>(77);
  for (const BertGraphOptions& o : {longer, negative, no_dtype, ids, pooling})
    CHECK_FALSE(test::error_text([&] { (void)build_sentence_encoder(c, o); }).empty());
  Graph g("g"), other("other");
  const Expr tokens = g.input("t", Shape({1, 2, 3}, DType::F32)), mask = g.input("m", Shape({1, 2}, DType::F32));
  REFUSED("77 is not a Pooling", pool_tokens(tokens, mask, static_cast<Pooling>(77)));
  REFUSED("an empty Expr", pool_tokens(Expr(), mask, Pooling::Mean));
  REFUSED("belongs to graph", pool_tokens(tokens, other.input("m", Shape({1, 2}, DType::F32)), Pooling::Mean));
  REFUSED("an empty Expr", l2_normalize(Expr()));
  CHECK(pooling_name(static_cast<Pooling>(77)) == "unknown");
  REFUSED("c.json", parse_bert_config(JsonDocument::parse("{}", "c.json")));
  REFUSED(kNowhere, read_sentence_config(kNowhere));
  REFUSED(kNowhere, read_model_config(kNowhere));
  REFUSED(kNowhere, weights_path(kNowhere));
  const test::TinyModel model;
  c.vocab_size = 2;
  REFUSED(model.path(), check_vocabulary(c, *load_tokenizer(model.path()), model.path()));
  REFUSED(model.path(), check_vocabulary(EncoderConfig(), *load_tokenizer(model.path()), model.path()));
}

TEST_CASE("misuse: encoders of texts") {
  REFUSED("c.json", parse_encoder_config(JsonDocument::parse("{}", "c.json")));
  REFUSED("c.json", parse_encoder_config(JsonDocument::parse("[]", "c.json")));
  REFUSED("vocab_size must be in [1, 2^30], got 0", build_encoder({}, {}));
  const test::TinyModel model;
  const EncoderConfig good = parse_encoder_config(JsonDocument::read(model.file("config.json")));
  const ModelWeights weights{open_checkpoint(weights_path(model.path())), "w"};
  CHECK(test::error_text([&] { (void)build_encoder(good, weights); }).empty());
  REFUSED("no loader", build_encoder(good, {}));
  REFUSED(kNowhere, open_encoder_weights(kNowhere, good));
  const auto config = [&](const std::function<void(EncoderConfig&)>& spoil) {
    EncoderConfig c = good;
    spoil(c);
    return c;
  };
  for (const EncoderConfig& c : {
           config([](EncoderConfig& x) { x.hidden_size = -1; }),
           config([](EncoderConfig& x) { x.kv_heads = 3; }),
           config([](EncoderConfig& x) { x.max_tokens = kHigh; }),
           config([](EncoderConfig& x) { x.max_tokens = 7; }),
           config([](EncoderConfig& x) { x.positions = EncoderPositions::AfterPadding; }),
           config([](EncoderConfig& x) { x.type_vocab_size = 0; }),
           config([](EncoderConfig& x) { x.relative_buckets = 3; }),
           config([](EncoderConfig& x) { x.relative_buckets = 32, x.relative_distance = 8; }),
           config([](EncoderConfig& x) { x.layers.clear(); }),
           config([](EncoderConfig& x) { x.layers[0].rope = 0; }),
           config([](EncoderConfig& x) { x.layers[0].reach = -1; }),
           config([](EncoderConfig& x) { x.ropes = {RopeSpec{.rotated = 4}}; }),
       })
    REFUSED("the configuration of a bert encoder: ", build_encoder(c, weights));
  const auto with = [&](const std::function<void(EncoderGraphOptions&)>& set) {
    EncoderGraphOptions o;
    set(o);
    return test::error_text([&] { (void)build_encoder(good, weights, o); });
  };
  CHECK(test::contains(with([](EncoderGraphOptions& o) { o.batch = -1; }), "must not be negative, got -1"));
  CHECK(test::contains(with([](EncoderGraphOptions& o) { o.sequence = 7; }), "must be in [1, 6], got 7"));
  CHECK(test::contains(with([](EncoderGraphOptions& o) { o.dimensions = 5; }), "dimensions must be in [1, 4]"));
  CHECK(test::contains(with([](EncoderGraphOptions& o) { o.dense = {{.name = "d", .in = 5, .out = 2}}; }),
                       "the dense layer 'd' has 5 inputs and 2 outputs, but the vectors before it have length 4"));
  CHECK(test::contains(with([](EncoderGraphOptions& o) { o.pooling = static_cast<Pooling>(77); }), "is not a Pooling"));
  EncoderConfig bare = good;
  bare.classifier.reset(), bare.names.types.clear(), bare.type_vocab_size = 0;
  EncoderGraphOptions scores, types;
  scores.output = EncoderOutput::Scores, types.types = true;
  REFUSED("a bert has no classifier that rlx supports", build_encoder(bare, weights, scores));
  REFUSED("a bert has no token types", build_encoder(bare, weights, types));
}

TEST_CASE("misuse: rerankers") {
  REFUSED(kNowhere, Reranker(kNowhere));
  const test::TinyModel model;
  std::vector<NamedTensor> tensors = test::TinyModel::tensors();
  tensors.push_back({"pooler.dense.weight", Tensor::full(Shape({4, 4}, DType::F32), 0.5)});
  tensors.push_back({"pooler.dense.bias", Tensor::zeros(Shape({4}, DType::F32))});
  tensors.push_back({"classifier.weight", Tensor::full(Shape({2, 4}, DType::F32), 0.5)});
  tensors.push_back({"classifier.bias", Tensor::zeros(Shape({2}, DType::F32))});
  model.write_weights(tensors);
  REFUSED("max_batch", Reranker(model.path(), {.max_batch = 0}));
  REFUSED("num_threads", Reranker(model.path(), {.num_threads = -1}));
  REFUSED("max_sequence", Reranker(model.path(), {.max_sequence = kHigh}));
  Reranker r(model.path());
  const std::vector<std::string> texts{"a", "\xff"};
  REFUSED("passage 2", r.score("a", texts));
  REFUSED("the query is empty", r.score("", texts));
  REFUSED("2 scores for a pair", r.rank("a", texts, 1));
  CHECK(r.labels() == 2);
  CHECK(r.score("a", {}).num_elements() == 0);
  Reranker taken = std::move(r);
  const std::string moved = "a Reranker was used after it was moved from";
  // NOLINTBEGIN(bugprone-use-after-move)
  REFUSED(moved, r.score("a", texts));
  REFUSED(moved, r.rank("a", texts, 1));
  REFUSED(moved, r.labels());
  REFUSED(moved, r.max_sequence());
  REFUSED(moved, r.weight_bytes());
  REFUSED(moved, r.config());
  REFUSED(moved, r.tokenizer());
  r = std::move(taken);  // operator=
  // NOLINTEND(bugprone-use-after-move)
  CHECK(r.max_sequence() == 6);
}

TEST_CASE("misuse: sentence encoders") {
  const test::TinyModel model;
  REFUSED(kNowhere, SentenceEncoder(kNowhere));
  REFUSED("max_batch", SentenceEncoder(model.path(), {.max_batch = 0}));
  REFUSED("num_threads", SentenceEncoder(model.path(), {.num_threads = -1}));
  REFUSED("max_sequence", SentenceEncoder(model.path(), {.max_sequence = kHigh}));
  REFUSED("max_sequence", SentenceEncoder(model.path(), {.max_sequence = -1}));
  REFUSED("dimensions", SentenceEncoder(model.path(), {.dimensions = 5}));
  SentenceEncoder e(model.path());
  const std::vector<std::string> texts{"a", ""};
  REFUSED("text 2 is empty", e.embed(texts));
  REFUSED("UTF-8", e.embed(std::string("\xff")));
  REFUSED("UTF-8", e.has_tokens("\xff"));
  REFUSED("leaves none for a text", e.max_text_tokens("a b c a b c"));
  CHECK(e.max_text_tokens("") == 4);
  REFUSED("no prompt called", e.prompt("query"));
  CHECK(e.query_prompt().empty());
  CHECK(e.passage_prompt().empty());
  CHECK(e.embed(std::span<const std::string>()).num_elements() == 0);
  SentenceEncoder taken = std::move(e);
  const std::string moved = "a SentenceEncoder was used after it was moved from";
  // NOLINTBEGIN(bugprone-use-after-move)
  REFUSED(moved, e.embed(texts));
  REFUSED(moved, e.embed(std::string("a")));
  REFUSED(moved, e.has_tokens("a"));
  REFUSED(moved, e.prompt());
  REFUSED(moved, e.query_prompt());
  REFUSED(moved, e.passage_prompt());
  REFUSED(moved, e.hidden_size());
  REFUSED(moved, e.max_sequence());
  REFUSED(moved, e.max_text_tokens(""));
  REFUSED(moved, e.fingerprint());
  REFUSED(moved, e.folder());
  REFUSED(moved, e.weight_bytes());
  REFUSED(moved, e.config());
  REFUSED(moved, e.tokenizer());
  e = std::move(taken);  // operator=
  // NOLINTEND(bugprone-use-after-move)
  CHECK(e.embed(std::string("a")).num_elements() == 4);

  REFUSED(kNowhere, open_checkpoint(kNowhere));
  Graph g("g");
  g.set_outputs({g.exp(g.param("w", Shape({2}, DType::F32)))});
  CompiledGraph f = Session().compile(std::move(g));
  REFUSED("no weights were given", load_checkpoint(f, nullptr, "p"));
  REFUSED("p: ", load_checkpoint(f, open_checkpoint(weights_path(model.path())), "p"));
  const float two[2] = {1, 2};
  REFUSED("different lengths, 2 and 0", cosine_similarity(two, {}));
  CHECK(cosine_similarity({}, {}) == 0);
}

TEST_CASE("misuse: passages") {
  CHECK(split_into_lines("").empty());
  CHECK(split_into_lines(std::string_view("\0\n\xff", 3)).size() == 2);
  CHECK(split_into_paragraphs("\n\n").empty());
  const test::TinyModel model;
  const auto tokenizer = load_tokenizer(model.path());
  REFUSED("cannot overlap", split_into_chunks("a", *tokenizer, {.max_tokens = 0}));
  REFUSED("cannot overlap", split_into_chunks("a", *tokenizer, {.max_tokens = 4, .overlap = 3}));
  REFUSED("cannot overlap", split_into_chunks("a", *tokenizer, {.max_tokens = kHigh, .overlap = -1}));
  REFUSED("UTF-8", split_into_chunks("\xff", *tokenizer));
  REFUSED("cannot overlap", split_long_passages({{"a b c", 1}}, *tokenizer, {.max_tokens = 2, .overlap = 2}));
  CHECK(split_long_passages({{"", 1}, {"a", 0}}, *tokenizer).size() == 1);
  const Tensor query = Tensor::zeros(Shape({3}, DType::F32)), rows = Tensor::zeros(Shape({2, 3}, DType::F32));
  REFUSED("does not match", best_matches(query, query, 1));
  REFUSED("does not match", best_matches(Tensor(), rows, 1));
  REFUSED("does not match", best_matches(query, Tensor(), 1));
  REFUSED("was read as f32", best_matches(query, rows.cast(DType::F64), 1));
  CHECK(best_matches(query, rows, ~std::size_t{0}).size() == 2);
  CHECK(best_matches(query, rows, 0).empty());
  std::vector<Match> matches{{0, 1}, {1, 3}, {2, 3}};
  keep_best(matches, ~std::size_t{0});
  CHECK(matches[0].index == 1);
  keep_best(matches, 0);
  CHECK(matches.empty());
}

TEST_CASE("misuse: text indexes") {
  const test::TinyModel model;
  const std::string text = model.write("texts/a.txt", "a b\n"), index = model.file("a.rlxi");
  SentenceEncoder e(model.path());
  const std::vector<std::string> none, texts{text}, nowhere{kNowhere};
  REFUSED(kNowhere, find_text_files(nowhere, {}));
  REFUSED("malformed", find_text_files(texts, {.globs = {""}}));
  REFUSED("check the path", find_text_files(std::vector<std::string>{""}, {}));
  CHECK(find_text_files(none, {}).empty());
  REFUSED(kNowhere, read_text_file(kNowhere));
  REFUSED("p: a binary file", check_searchable_text(std::string_view("\0", 1), "p"));
  REFUSED(kNowhere, looks_binary(kNowhere));
  REFUSED("PassageKind", passage_kind_name(static_cast<PassageKind>(9)));
  REFUSED("PassageKind", split_text("a", static_cast<PassageKind>(9), e.tokenizer(), {}));
  REFUSED("at least one file or folder", update_text_index(index, none, e));
  REFUSED(kNowhere, update_text_index(index, nowhere, e));
  REFUSED("cannot have vectors of type f32", update_text_index(index, texts, e, {.vectors = DType::F32}));
  REFUSED("", update_text_index(index, texts, e, {.vectors = test::kNoDType}));
  REFUSED("cannot overlap", update_text_index(index, texts, e, {.chunks = {.max_tokens = 2, .overlap = 2}}));
  REFUSED("PassageKind", update_text_index(index, texts, e, {.passages = static_cast<PassageKind>(9)}));
  REFUSED("is not valid UTF-8", update_text_index(index, std::vector<std::string>{"\xff"}, e));
  REFUSED("is not an index of texts", update_text_index(text, texts, e));
  REFUSED("no/such", update_text_index(model.file("no/such/x"), texts, e));
  REFUSED(kNowhere, TextIndex::open(kNowhere));
  REFUSED("is not an index of texts", TextIndex::open(text));
  CHECK(update_text_index(index, texts, e).embedded == 1);
  TextIndex i = TextIndex::open(index);
  REFUSED("the query is empty", i.search(e, "", 1));
  REFUSED("UTF-8", i.search(e, "\xff", 1));
  CHECK(i.search(e, "a", ~std::size_t{0}).size() == 1);
  CHECK_FALSE(i.is_current(""));
  SentenceEncoder short_one(model.path(), {.dimensions = 2});
  REFUSED("those of another model", i.search(short_one, "a", 1));
  TextIndex taken = std::move(i);
  const std::string moved = "a TextIndex was used after it was moved from";
  // NOLINTBEGIN(bugprone-use-after-move)
  REFUSED(moved, i.search(e, "a", 1));
  REFUSED(moved, i.num_files());
  REFUSED(moved, i.num_passages());
  REFUSED(moved, i.size_bytes());
  REFUSED(moved, i.paths());
  REFUSED(moved, i.options());
  REFUSED(moved, i.model());
  REFUSED(moved, i.dimensions());
  REFUSED(moved, i.is_current(text));
  i = std::move(taken);  // operator=
  // NOLINTEND(bugprone-use-after-move)
  CHECK(i.num_passages() == 1);
}

TEST_CASE("misuse: chat templates") {
  REFUSED("", ChatTemplate::parse("{{", ""));
  REFUSED("not valid UTF-8", ChatTemplate::parse("\xff", "t"));
  REFUSED("there is no chat template", ChatTemplate::load(kNowhere));
  REFUSED("there is no chat template", ChatTemplate::load(""));
  CHECK(special_token_names(std::string(kNowhere)).empty());
  const test::TempDir broken;
  broken.write("tokenizer_config.json", "[");
  REFUSED("tokenizer_config.json", special_token_names(broken.path()));
  ChatTemplate chat = ChatTemplate::parse("{{ messages[0].content.x.y }}", "t");
  REFUSED("has no element 0", chat.render(std::vector<ChatMessage>{}));
  REFUSED("has no attribute", chat.render(std::vector<ChatMessage>{{"user", "x"}}));
  const JsonDocument json = JsonDocument::parse(R"({"big": 18446744073709551615, "list": []})", "f.json");
  REFUSED("an array of objects", chat.render(json.root()));
  ChatTemplateOptions options;
  options.template_name = "nosuch";
  REFUSED("there is no chat template 'nosuch'", chat.render(json.root().at("list"), options));
  options = {};
  options.variables = json.root().at("list");
  REFUSED("f.json", chat.render(json.root().at("list"), options));
  options.variables = json.root();
  REFUSED("has no element 0", chat.render(json.root().at("list"), options));
  options = {};
  options.max_steps = 0;
  REFUSED("too many steps", chat.render(json.root().at("list"), options));
  REFUSED("there is no chat template 'x'", chat.source("x"));
  const ChatTemplate moved = std::move(chat);
  // NOLINTBEGIN(bugprone-use-after-move)
  REFUSED("moved from", chat.names());
  REFUSED("moved from", chat.source());
  REFUSED("moved from", chat.special_tokens());
  REFUSED("moved from", chat.render(json.root().at("list")));
  // NOLINTEND(bugprone-use-after-move)
  CHECK(moved.special_tokens().empty());
}
