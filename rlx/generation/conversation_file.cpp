// Writes conversations, and reads them back with every number checked.
#include "rlx/generation/conversation_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "rlx/base/output_file.h"
#include "rlx/base/utf8.h"
#include "rlx/error.h"
#include "rlx/formats/json.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

constexpr std::string_view kConversationMagic = "RLXCHAT\n";
constexpr std::uint32_t kConversationVersion = 2;  // 1 where no window was truncated
constexpr std::size_t kChecksumBytes = 16, kFixedBytes = 16;

void append_number(std::string& out, std::uint64_t v, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(v >> (8 * i) & 0xFF);
}
std::uint64_t number_at(std::string_view text, std::size_t at, int bytes) {
  std::uint64_t v = 0;
  for (int i = 0; i < bytes; ++i)
    v |= std::uint64_t{static_cast<unsigned char>(text[at + static_cast<std::size_t>(i)])} << (8 * i);
  return v;
}
std::string checksum_of(std::string_view bytes) {
  const Fingerprint f = fingerprint_bytes(bytes.data(), bytes.size());
  std::string out;
  append_number(out, f.low, 8);
  append_number(out, f.high, 8);
  return out;
}
std::string_view bytes_of(const Tensor& t) { return {reinterpret_cast<const char*>(t.data()), t.size_bytes()}; }

// The layer of a state "cache.k.LAYER".
std::size_t layer_of(const std::string& state) {
  return static_cast<std::size_t>(std::stoul(state.substr(state.rfind('.') + 1)));
}

// A cache state, with the bytes of a row.
struct CacheState {
  std::string name;
  Shape row;  // shape of one token's row
  std::size_t bytes = 0;
  bool windowed = false;   // stored in window pages
  std::int64_t first = 0;  // the token of the first row in the file
};
std::vector<CacheState> cache_states(const DecoderModel& model) {
  std::vector<CacheState> out;
  for (const IoInfo& state : model.program().states()) {
    std::vector<std::int64_t> dims = state.shape.static_dims();
    dims.at(0) = 1;
    Shape row(Dims(dims.begin(), dims.end()), state.shape.dtype());
    const std::size_t bytes = row.size_bytes();
    const bool windowed = model.cache().windows() && model.config().layers.at(layer_of(state.name)).window != 0;
    out.push_back({state.name, std::move(row), bytes, windowed});
  }
  return out;
}

std::string cache_type(const DecoderModel& model) {
  const DecoderOptions& o = model.options();
  return std::string(o.cache_scheme ? quant_scheme_name(*o.cache_scheme) : dtype_name(o.cache_dtype));
}

// Calls `f(rows of a state, their first token)` for the rows of the tokens [token, count), one call for adjacent rows.
template <class F>
void for_rows(const KvCache& cache, const KvPages& held, bool windowed, std::int64_t token, std::int64_t count,
              const F& f) {
  const std::int64_t size = windowed ? cache.windows()->page() : cache.page();
  const auto page = [&](std::int64_t t) {
    const auto at = static_cast<std::size_t>(t / size);
    return std::int64_t{windowed ? held.window_pages[at - static_cast<std::size_t>(held.window_first)]
                                 : held.pages[at]};
  };
  while (token < count) {
    const std::int64_t first = token, begin = page(first) * size + first % size;
    do {
      token = std::min(count, (token / size + 1) * size);
    } while (token < count && page(token) * size == begin + (token - first));
    f(Rows{begin, token - first}, first);
  }
}

void check_room(const KvCache& cache, const KvPages& held, std::int64_t count) {
  const auto pages = static_cast<std::int64_t>(held.pages.size());
  if (count < 0 || count > pages * cache.page())
    throw Error(ErrorCode::InvalidArgument,
                concat_text(pages, " pages of ", cache.page(), " tokens cannot hold ", count, " tokens"));
  for (const PageId page : held.pages)
    (void)detail::checked_index("page", page, static_cast<std::size_t>(cache.pages()));
  const KvWindows* windows = cache.windows();
  if (!windows) return;
  const auto last = static_cast<std::int64_t>(held.window_pages.size());
  if (held.window_first < 0 || held.window_first > windows->first_needed(count) ||
      count > (held.window_first + last) * windows->page())
    throw Error(ErrorCode::InvalidArgument,
                concat_text(last, " pages of ", windows->page(), " tokens from page ", held.window_first,
                            " on do not hold the sliding windows after ", count, " tokens"));
  for (const PageId page : held.window_pages)
    (void)detail::checked_index("page", page, static_cast<std::size_t>(windows->pages()));
}

// A file that cannot be read again must not replace one that can. The header is JSON.
void check_readable(const DecoderModel& model, const Conversation& c) {
  for (std::size_t i = 0; i < c.tokens.size(); ++i)
    if (c.tokens[i] < 0 || c.tokens[i] >= model.config().vocab_size)
      throw Error(ErrorCode::InvalidArgument,
                  concat_text("cannot save the conversation: its token ", i, " is ", c.tokens[i],
                              ", but the model has ids 0 to ", model.config().vocab_size - 1));
  for (std::size_t i = 0; i < c.messages.size(); ++i)
    for (const auto& [what, text] : {std::pair<std::string_view, std::string_view>{"role", c.messages[i].role},
                                     {"content", c.messages[i].content}})
      if (const std::optional<std::size_t> bad = find_invalid_utf8(text))
        throw Error(ErrorCode::InvalidArgument,
                    concat_text("cannot save the conversation: the ", what, " of message ", i + 1,
                                " is not valid UTF-8 at byte ", *bad),
                    "convert the text to UTF-8");
}

std::string head_text(const DecoderModel& model, const Conversation& c, std::int64_t cached, std::int64_t first) {
  JsonWriter json;
  json.begin_object();
  json.member("tokens", std::uint64_t{c.tokens.size()}).member("cached", cached);
  json.member("family", model.config().family).member("vocab_size", model.config().vocab_size);
  json.member("config", model.config_fingerprint().text());
  json.member("weights", model.weights_fingerprint().text());
  json.member("sources", model.sources_fingerprint().text());
  json.member("products", matmul_precision_name(model.options().matmul_precision)).member("cache", cache_type(model));
  json.key("states").begin_array();
  for (const CacheState& s : cache_states(model)) {
    json.begin_object().member("name", s.name).member("row_bytes", std::uint64_t{s.bytes});
    if (s.windowed && first != 0) json.member("first", first);
    json.end_object();
  }
  json.end_array();
  if (c.answer.tokens > 0) {
    json.key("answer").begin_object().member("tokens", c.answer.tokens);
    if (c.answer.surprise_limit) json.member("surprise_limit", *c.answer.surprise_limit);
    json.end_object();
  }
  json.key("messages").begin_array();
  for (const ChatMessage& m : c.messages)
    json.begin_object().member("role", m.role).member("content", m.content).end_object();
  json.end_array().end_object();
  return json.take();
}

}  // namespace

void save_conversation(const std::string& path, const DecoderModel& model, const Conversation& conversation,
                       const KvPages& pages, std::int64_t cached) try {
  check_room(model.cache(), pages, cached);
  if (cached > static_cast<std::int64_t>(conversation.tokens.size()))
    throw Error(ErrorCode::InvalidArgument, concat_text("a conversation of ", conversation.tokens.size(),
                                                        " tokens cannot have a number of keys and values of ", cached));
  const BegunAnswer& answer = conversation.answer;
  if (answer.tokens < 0 || answer.tokens > static_cast<std::int64_t>(conversation.tokens.size()) ||
      (answer.surprise_limit && !std::isfinite(*answer.surprise_limit)))
    throw Error(ErrorCode::InvalidArgument,
                concat_text("a conversation of ", conversation.tokens.size(), " tokens cannot end with an answer of ",
                            answer.tokens, " tokens and a Mirostat surprise of ", answer.surprise_limit.value_or(0)));
  check_readable(model, conversation);
  const KvWindows* windows = model.cache().windows();
  const std::int64_t first = windows ? std::min(pages.window_first * windows->page(), cached) : 0;
  const std::string head = head_text(model, conversation, cached, first);
  if (head.size() > std::size_t{1} << 30)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("the messages of a conversation have ", head.size(), " bytes; at most 2^30 can be saved"));
  OutputFile file(path);
  std::string fixed(kConversationMagic);
  append_number(fixed, first == 0 ? 1 : kConversationVersion, 4);
  append_number(fixed, head.size(), 4);
  file.write(fixed);
  file.write(head);
  file.write(checksum_of(fixed + head));
  std::string tokens;
  for (const TokenId t : conversation.tokens) append_number(tokens, static_cast<std::uint32_t>(t), 4);
  file.write(tokens);
  file.write(checksum_of(tokens));
  for (const CacheState& s : cache_states(model)) {
    std::string rows;
    const std::int64_t from = s.windowed ? first : 0;
    rows.reserve(static_cast<std::size_t>(cached - from) * s.bytes);
    for_rows(model.cache(), pages, s.windowed, from, cached,
             [&](Rows r, std::int64_t) { rows += bytes_of(model.program().read_state(s.name, r)); });
    file.write(rows);
    file.write(checksum_of(rows));
  }
  file.commit();
} catch (const std::bad_alloc&) {
  throw_out_of_memory("save_conversation");
}

void save_conversation(const std::string& path, const DecoderModel& model, const Conversation& conversation,
                       std::int64_t sequence) {
  save_conversation(path, model, conversation, model.cache().held(sequence), model.length(sequence));
}

struct ConversationFile::Impl {
  MappedFile file;
  Conversation conversation{};
  std::int64_t cached = 0, usable = 0;  // in tokens; usable: by the model that opened the file
  std::int64_t window = 0;              // sliding window of that model; 0: no window pages
  std::int64_t first = 0;               // the first token of windows
  std::size_t rows_at = 0;              // offset of the first state
  std::vector<std::int64_t> firsts{};   // first token of each state

  bool restores(std::int64_t count) const {
    return count >= 0 && count <= cached && (count == 0 || first == 0 || (window != 0 && first <= count - window + 1));
  }

  [[noreturn]] void fail(std::string what, std::string hint = "save the conversation again") const {
    throw Error(ErrorCode::BadFile, concat_text(file.path(), ": ", what), std::move(hint));
  }
  [[noreturn]] void misfit(std::string_view what, std::string_view saved, std::string_view here,
                           std::string hint) const {
    throw Error(ErrorCode::InvalidArgument,
                concat_text(file.path(), " was saved with ", what, " ", saved, ", but the model has ", here),
                std::move(hint));
  }

  // Returns bytes [at, at + size) after verifying the checksum that follows them, and moves `at` past both.
  std::string_view section(std::size_t& at, std::size_t size, std::string_view what) const {
    const std::string_view text = file.text();
    const std::string_view bytes = text.substr(at, size);
    if (checksum_of(bytes) != text.substr(at + size, kChecksumBytes))
      fail(concat_text(what, " are damaged: their checksum differs from the saved one"));
    at += size + kChecksumBytes;
    return bytes;
  }

  std::string_view head() const {
    const std::string_view text = file.text();
    if (text.size() < kFixedBytes || !text.starts_with(kConversationMagic))
      fail("this is not a saved conversation", "`rlx generate --save-state FILE` and /save of `rlx chat` write them");
    if (const std::uint64_t version = number_at(text, 8, 4); version != 1 && version != kConversationVersion)
      fail(concat_text("a saved conversation of version ", version, "; this program reads version ",
                       kConversationVersion));
    const std::uint64_t size = number_at(text, 12, 4);
    if (size > text.size() - kFixedBytes || text.size() - kFixedBytes - size < kChecksumBytes) cut_short();
    const std::size_t end = kFixedBytes + static_cast<std::size_t>(size);
    if (checksum_of(text.substr(0, end)) != text.substr(end, kChecksumBytes))
      fail("its header is damaged: its checksum differs from the saved one");
    return text.substr(kFixedBytes, static_cast<std::size_t>(size));
  }
  [[noreturn]] void cut_short() const { fail(concat_text("the file is cut short: it has ", file.size(), " bytes")); }

  void check_model(const JsonValue& head, const DecoderModel& model) const {
    const auto text = [&](std::string_view key) { return head.get_string(key); };
    if (text("family") != model.config().family)
      misfit("a model of the family", text("family"), model.config().family,
             "load it with the model it was saved with");
    if (text("config") != model.config_fingerprint().text())
      throw Error(ErrorCode::InvalidArgument,
                  concat_text(file.path(), " was saved with another configuration of a ", model.config().family),
                  "load it with the model it was saved with; where rotary positions depend on the context, with that "
                  "context");
    if (text("cache") != cache_type(model))
      misfit("a cache of", text("cache"), cache_type(model),
             concat_text("load the model with a cache of ", text("cache")));
    if (text("products") != matmul_precision_name(model.options().matmul_precision))
      misfit("matmul precision", text("products"), matmul_precision_name(model.options().matmul_precision),
             concat_text("load the model with matmul precision ", text("products")));
    // Unchanged source files need not be read again.
    const std::string sources = model.sources_fingerprint().text();
    if ((text("sources") != sources || sources == Fingerprint().text()) &&
        text("weights") != model.weights_fingerprint().text())
      throw Error(ErrorCode::InvalidArgument, concat_text(file.path(), " was saved with other weights"),
                  "load it with the model it was saved with");
  }

  void read(const DecoderModel& model) {
    const std::string_view text = head();
    const JsonDocument document = JsonDocument::parse(text, file.path());
    const JsonValue root = document.root_object();
    check_model(root, model);
    const std::int64_t tokens = root.get_int("tokens");
    cached = root.get_int("cached");
    if (tokens < 0 || cached < 0 || cached > tokens) fail("its token counts are not valid");
    if (tokens > model.context())
      throw Error(ErrorCode::InvalidArgument,
                  concat_text(file.path(), " has ", tokens, " tokens, but the model was loaded with a context of ",
                              model.context()),
                  "load the model with a larger context");
    const std::vector<CacheState> states = cache_states(model);
    const std::vector<JsonValue> saved = root.at("states").elements("states");
    if (saved.size() != states.size()) fail("it does not have as many states as the model");
    std::size_t at = kFixedBytes + text.size() + kChecksumBytes;
    std::size_t end = at + static_cast<std::size_t>(tokens) * 4 + kChecksumBytes;
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (saved[i].get_string("name") != states[i].name ||
          saved[i].get_int("row_bytes") != static_cast<std::int64_t>(states[i].bytes))
        fail(concat_text("its state ", i, " does not match the model's state ", states[i].name));
      const std::int64_t from = saved[i].find("first") ? saved[i].get_int("first") : 0;
      const bool may = model.config().layers.at(layer_of(states[i].name)).window != 0;
      if (from < 0 || from > cached || (from != 0 && !may))
        fail(concat_text("the rows of ", states[i].name, " begin at a token that is not valid"));
      firsts.push_back(from);
      first = std::max(first, from);
      end += static_cast<std::size_t>(cached - from) * states[i].bytes + kChecksumBytes;
    }
    if (file.size() < end) cut_short();
    if (file.size() > end) fail(concat_text("the file has ", file.size() - end, " extra bytes at its end"));
    const std::string_view ids = section(at, static_cast<std::size_t>(tokens) * 4, "its tokens");
    for (std::size_t i = 0; i < ids.size(); i += 4) {
      const auto id = static_cast<TokenId>(static_cast<std::uint32_t>(number_at(ids, i, 4)));
      if (id < 0 || id >= model.config().vocab_size) fail(concat_text("its token ", i / 4, " is ", id));
      conversation.tokens.push_back(id);
    }
    rows_at = at;
    for (std::size_t i = 0; i < states.size(); ++i)
      (void)section(at, static_cast<std::size_t>(cached - firsts[i]) * states[i].bytes,
                    concat_text("the rows of ", states[i].name));
    if (const KvWindows* w = model.cache().windows()) window = w->window();
    usable = restores(cached) ? cached : 0;
    if (const std::optional<JsonValue> answer = root.find("answer")) {
      conversation.answer.tokens = answer->get_int("tokens");
      if (conversation.answer.tokens < 0 || conversation.answer.tokens > tokens)
        fail("its answer is longer than its text");
      if (answer->find("surprise_limit")) conversation.answer.surprise_limit = answer->get_number("surprise_limit");
    }
    for (const JsonValue& m : root.at("messages").elements("messages"))
      conversation.messages.push_back({std::string(m.get_string("role")), std::string(m.get_string("content"))});
  }
};

ConversationFile::ConversationFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ConversationFile::ConversationFile(ConversationFile&&) noexcept = default;
ConversationFile& ConversationFile::operator=(ConversationFile&&) noexcept = default;
ConversationFile::~ConversationFile() = default;

ConversationFile ConversationFile::open(const std::string& path, const DecoderModel& model) try {
  auto impl = std::make_unique<Impl>(Impl{MappedFile::open(path, MapAdvice::Sequential)});
  const GuardedReads reads;
  impl->read(model);
  reads.check(impl->file.text().data());
  return ConversationFile(std::move(impl));
} catch (const std::bad_alloc&) {
  throw_out_of_memory("ConversationFile::open");
}

const ConversationFile::Impl& ConversationFile::impl() const {
  if (!impl_)
    throw Error(ErrorCode::InvalidArgument, "a ConversationFile was used after it was moved from",
                "use the object that it was moved to");
  return *impl_;
}
const Conversation& ConversationFile::conversation() const { return impl().conversation; }
std::int64_t ConversationFile::cached() const { return impl().usable; }
std::int64_t ConversationFile::first() const { return impl().first; }
bool ConversationFile::restores(std::int64_t count) const { return impl().restores(count); }

void ConversationFile::restore(DecoderModel& model, const KvPages& pages, std::int64_t count) const try {
  const Impl& saved = impl();
  check_room(model.cache(), pages, count);
  if (count > saved.cached)
    throw Error(ErrorCode::InvalidArgument, concat_text(saved.file.path(), " has keys and values for ", saved.cached,
                                                        " tokens, but ", count, " were asked for"));
  if (!saved.restores(count))
    throw Error(ErrorCode::InvalidArgument,
                concat_text(saved.file.path(), " has sliding windows from token ", saved.first, " on, so the first ",
                            count, " tokens alone cannot be continued"),
                "restore all tokens of the file, or run the text again");
  std::size_t at = saved.rows_at, state = 0;
  const GuardedReads reads;
  for (const CacheState& s : cache_states(model)) {
    const char* rows = saved.file.text().data() + at;
    const std::int64_t in_file = saved.firsts[state++];
    const std::int64_t from =
        s.windowed ? std::max(in_file, pages.window_first * model.cache().windows()->page()) : in_file;
    for_rows(model.cache(), pages, s.windowed, from, count, [&](Rows r, std::int64_t first) {
      std::vector<std::int64_t> dims = s.row.static_dims();
      dims[0] = r.count;
      Tensor value = Tensor::uninitialized(Shape(Dims(dims.begin(), dims.end()), s.row.dtype()));
      std::memcpy(value.mutable_data(), rows + static_cast<std::size_t>(first - in_file) * s.bytes, value.size_bytes());
      model.write_cache(s.name, value, r);
    });
    at += static_cast<std::size_t>(saved.cached - in_file) * s.bytes + kChecksumBytes;
  }
  reads.check(saved.file.text().data());
} catch (const std::bad_alloc&) {
  throw_out_of_memory("ConversationFile::restore");
}

Conversation load_conversation(const std::string& path, DecoderModel& model, std::int64_t sequence) {
  if (model.length(sequence) != 0)
    throw Error(ErrorCode::InvalidArgument,
                concat_text("sequence ", sequence, " has ", model.length(sequence),
                            " tokens, so a saved conversation cannot be restored into it"),
                "truncate the sequence to 0 tokens first");
  const ConversationFile file = ConversationFile::open(path, model);
  model.cache().append(sequence, file.cached());
  try {
    if (KvWindows* windows = model.cache().windows())
      windows->begin(sequence, file.cached(), file.cached() ? file.first() : 0);
    file.restore(model, model.cache().held(sequence), file.cached());
  } catch (...) {
    model.truncate(0, sequence);
    throw;
  }
  return file.conversation();
}

}  // namespace rlx
