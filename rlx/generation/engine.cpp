// The engine: requests, their sequences, and the scheduling of runs.
#include "rlx/generation/engine.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <iterator>
#include <list>
#include <new>
#include <thread>
#include <utility>

#include "rlx/base/callback_life.h"
#include "rlx/error.h"
#include "rlx/generation/engine/batch.h"
#include "rlx/generation/engine/drafter.h"
#include "rlx/generation/grammar/answer_grammar.h"
#include "rlx/generation/prefix_cache.h"
#include "rlx/generation/stop_strings.h"
#include "rlx/tensor/out_of_memory.h"
#include "rlx/text/stream_decoder.h"

namespace rlx {

std::string_view finish_reason_name(FinishReason reason) {
  constexpr std::string_view kNames[] = {"",          "stop_token",  "stop_string", "max_tokens", "context_full",
                                         "cancelled", "grammar_end", "failed"};
  const auto at = static_cast<std::size_t>(reason);
  if (at >= std::size(kNames)) detail::throw_no_enumerator("FinishReason", static_cast<std::int64_t>(at));
  return kNames[at];
}

namespace {

struct Request {
  RequestId id = 0;
  GenerationOptions options;
  Sampler sampler;  // holds the tokens of the request, including the prompt
  std::optional<StreamDecoder> text{};
  StopStrings stops;
  std::optional<AnswerGrammar> grammar{};  // replaces `text` as the source of text
  std::int64_t prompt = 0;                 // tokens
  std::int64_t sequence = -1;              // sequence of the model; -1 while the request waits
  std::int64_t adapter = -1;               // adapter of the model; -1: none
  bool cancelled = false, ended = false;
  Draft draft{};                         // draft of the current step
  const Tokenizer* tokenizer = nullptr;  // decodes `text`
  std::string shown{};                   // continued answer: end of its first part, which may be repeated
  mutable std::int64_t shared_pages = 0;

  // The text of a token. Ids that pad the vocabulary to a round number have no text.
  std::string said(std::optional<StreamDecoder>& decoder, TokenId token) const {
    return decoder && tokenizer->id_to_token(token) ? decoder->push(token) : std::string();
  }
  std::string text_of(TokenId token) {
    if (grammar) return grammar->accept(token);
    return said(text, token);
  }
  std::string rest_of_text() { return grammar ? grammar->flush() : text ? text->flush() : std::string(); }
  bool ends(TokenId token) const {
    return std::find(options.stop_tokens.begin(), options.stop_tokens.end(), token) != options.stop_tokens.end();
  }
  // Removes from a continued answer's text what its first part already returned at its end: the beginning of a stop
  // string, or bytes of an incomplete character.
  std::string unseen(std::string piece) {
    std::size_t same = 0;
    while (same < std::min(piece.size(), shown.size()) && piece[same] == shown[same]) ++same;
    if (same == piece.size()) {
      shown.erase(0, same);
      return {};
    }
    while (same > 0 && (static_cast<unsigned char>(piece[same]) & 0xC0U) == 0x80) --same;
    shown.clear();
    return piece.substr(same);
  }
  // Replays the tokens of a begun answer.
  void go_on(std::span<const TokenId> answer) {
    std::optional<StreamDecoder> other;  // decodes the first part, which was flushed at its end
    if (text) other.emplace(*tokenizer);
    for (const TokenId token : answer) {
      if (ends(token) && !grammar) continue;
      (void)stops.push(text_of(token));
      (void)said(other, token);
    }
    if (grammar && grammar->must_end())
      throw Error(ErrorCode::InvalidArgument, "the grammar of the answer is complete: no token can follow",
                  "continue without the grammar, or begin a new answer");
    if (stops.found()) stops = StopStrings(options.stop);
    StopStrings held = stops;
    shown = held.push(grammar ? AnswerGrammar(*grammar).flush() : other ? other->flush() : std::string());
    shown += held.found() ? std::string() : held.flush();
    if (options.begun.surprise_limit && options.sampling.mirostat != 0) {
      Sampler::Mark mark = sampler.mark();
      mark.surprise_limit = *options.begun.surprise_limit;
      sampler.return_to(mark);
    }
  }
  BegunAnswer answer() const {
    BegunAnswer out{options.begun.tokens + size() - prompt};
    if (size() > prompt && ends(sampler.sequence().back())) --out.tokens;
    if (options.sampling.mirostat != 0) out.surprise_limit = sampler.mark().surprise_limit;
    return out;
  }
  std::int64_t size() const { return static_cast<std::int64_t>(sampler.sequence().size()); }
  std::uint64_t space() const { return static_cast<std::uint64_t>(adapter + 1); }  // of prefixes
};

}  // namespace

struct Engine::Impl : CallbackLife {
  DecoderModel model;
  std::shared_ptr<const Tokenizer> tokenizer;
  EngineOptions options;
  BatchConstructor batches;
  Drafter drafter;
  std::optional<PrefixCache> prefixes{};
  std::list<Request> requests{};          // in order of arrival
  std::vector<Request*> running{};        // by sequence
  std::vector<GenerationEvent> events{};  // not returned yet
  GrammarCache grammars{};
  EngineStatistics statistics{};
  RequestId next_id = 1;
  std::atomic<std::thread::id> user{};  // the thread of the current call

  // Marks a call in progress. A concurrent call of another thread gets an error. Callbacks of `generate` may call the
  // engine.
  struct Busy {
    explicit Busy(Impl& e) : engine(e) {
      std::thread::id before{};
      first = engine.user.compare_exchange_strong(before, std::this_thread::get_id());
      if (!first && before != std::this_thread::get_id())
        throw Error(ErrorCode::InvalidArgument, "two threads call one Engine at the same time",
                    "let one thread call it, or hold a lock around each call");
    }
    ~Busy() {
      if (first) engine.user = std::thread::id();
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
    Impl& engine;
    bool first = false;
  };
  // Pages held during an operation.
  struct HeldPages {
    explicit HeldPages(KvCache& c) : cache(c) {}
    ~HeldPages() {
      for (const PageId page : held.pages) cache.pool().release(page);
      for (const PageId page : held.window_pages) cache.windows()->pool().release(page);
    }
    HeldPages(const HeldPages&) = delete;
    HeldPages& operator=(const HeldPages&) = delete;
    KvCache& cache;
    KvPages held{};
  };

  Impl(DecoderModel m, std::shared_ptr<const Tokenizer> t, const EngineOptions& o, std::optional<DraftModel> draft)
      : model(std::move(m)),
        tokenizer(std::move(t)),
        options(o),
        batches(batch_tokens(), model.cache().sequences()),
        drafter(o.draft, std::move(draft), model, tokenizer.get()) {
    if (options.prefix_cache) prefixes.emplace(model.cache());
    running.resize(static_cast<std::size_t>(model.cache().sequences()));
  }

  std::int64_t batch_tokens() const {
    const std::int64_t most = model.max_tokens();
    return options.max_batch_tokens ? std::min(options.max_batch_tokens, most) : most;
  }

  // -- sequences of the model --

  // Evicts cached pages that no sequence uses before a request must wait.
  bool make_room(std::int64_t pages) {
    const std::int64_t missing = pages - model.cache().free_pages();
    return missing <= 0 || (prefixes && prefixes->evict(missing) == missing);
  }
  std::int64_t pages_for(const Request& r, std::int64_t tokens) const {
    const KvCache& cache = model.cache();
    const std::int64_t held = r.sequence < 0 ? 0 : static_cast<std::int64_t>(cache.table(r.sequence).size());
    return std::max<std::int64_t>(0, (tokens + cache.page() - 1) / cache.page() - held);
  }

  // Assigns sequences to waiting requests, as long as there are sequences and pages.
  void admit() {
    for (Request& r : requests) {
      if (r.sequence >= 0 || r.cancelled) continue;
      const auto free = std::find(running.begin(), running.end(), nullptr);
      if (free == running.end()) return;
      const std::int64_t sequence = free - running.begin();
      PrefixMatch match;
      if (prefixes) match = prefixes->match_prefix(r.sampler.sequence(), r.space());
      if (match.partial >= 0)
        model.cache().pool().release(match.partial);  // recomputing some tokens is cheaper than a copy
      HeldPages taken(model.cache());
      taken.held = std::move(static_cast<KvPages&>(match));
      model.cache().adopt(sequence, taken.held);
      taken.held = {};
      r.sequence = sequence;
      const bool alone = std::all_of(running.begin(), running.end(), [](const Request* other) { return !other; });
      if (!make_room(pages_for(r, r.size())) && !alone) {  // a lone request runs anyway: the run reports the error
        model.cache().truncate(sequence, 0);
        r.sequence = -1;
        return;
      }
      *free = &r;
      statistics.reused_tokens += match.tokens;
    }
  }

  // Removes a request from its sequence. With `keep`, its pages stay in the prefix cache.
  void release(Request& r, bool keep) {
    if (r.sequence < 0) return;
    KvCache& cache = model.cache();
    drop_keys_beyond(r);
    r.draft.drop();
    const auto computed = static_cast<std::size_t>(cache.length(r.sequence));
    drafter.release(r.sequence, r.sampler.sequence());
    if (keep && prefixes) keep_prefix(r, computed);
    cache.truncate(r.sequence, 0);
    running[static_cast<std::size_t>(r.sequence)] = nullptr;
    r.sequence = -1;
  }

  void keep_prefix(const Request& r, std::size_t computed) {
    try {
      prefixes->insert(r.sampler.sequence().first(computed), model.cache().held(r.sequence), r.space());
    } catch (const std::bad_alloc&) {
      // pages that are not kept are recomputed
    }
  }

  // Caches window pages before a sliding-window layer frees them, as long as there is room.
  void share_windows(const Request& r) {
    const KvCache& cache = model.cache();
    if (!prefixes || !cache.windows() || r.sequence < 0) return;
    const std::int64_t computed = cache.length(r.sequence);
    if (computed / cache.page() == r.shared_pages) return;
    keep_prefix(r, static_cast<std::size_t>(computed));
    r.shared_pages = computed / cache.page();
  }

  // Drops the keys of rejected draft tokens, and of the last token, which runs again with the next ones.
  void drop_keys_beyond(const Request& r) {
    const std::int64_t stands = r.size() - 1;
    if (model.length(r.sequence) > stands) model.truncate(stands, r.sequence);
    drafter.truncate(r.sequence, stands);
  }

  // -- a step --

  bool answers(const Request& r) const {
    return r.size() > r.prompt && r.size() - model.cache().length(r.sequence) == 1;
  }
  // Makes the drafts of decoding requests. They share equally what is left of the batch's token budget after one token
  // each, or half of it while prompts wait.
  void draft() {
    if (drafter.most() == 0) return;
    std::vector<DraftPlace> places;
    std::int64_t answering = 0;
    for (Request& r : requests) {
      if (r.sequence < 0 || r.cancelled) continue;
      places.push_back(
          {&r.sampler, r.sequence, answers(r), 0, &r.draft, r.options.stop_tokens, r.grammar ? &*r.grammar : nullptr});
      answering += places.back().answers;
      if (!places.back().answers) continue;
      std::int64_t room = model.context() - r.size();
      if (r.options.max_new_tokens != 0) room = std::min(room, r.options.max_new_tokens - (r.size() - r.prompt));
      places.back().most = std::min(drafter.most(), room - 1);  // the run samples one token more than the draft has
    }
    std::int64_t left = batch_tokens() - answering;
    if (static_cast<std::size_t>(answering) < places.size()) left /= 2;
    for (DraftPlace& p : places)
      if (p.answers) p.most = std::clamp<std::int64_t>(left / answering, 0, p.most);
    drafter.draft(places);
  }

  struct Chosen {
    std::vector<Request*> requests{};
    std::vector<SequenceTokens> parts{};
    std::deque<std::vector<TokenId>> drafted{};  // tokens of the parts with drafts
  };
  // Chooses the sequences of a run and their tokens: first requests in decode, then requests in prefill, each in order
  // of arrival. When pages run out, the youngest request is preempted.
  Chosen choose() {
    while (true) {
      std::deque<BatchRequest> decode, prefill;
      std::int64_t drafted = 0;
      for (const Request& r : requests) {
        if (r.sequence < 0 || r.cancelled) continue;
        const std::int64_t done = model.cache().length(r.sequence), left = r.size() - done;
        const auto more = static_cast<std::int64_t>(r.draft.tokens.size());
        (answers(r) ? decode : prefill).push_back({r.id, left + more, done});
        drafted += more;
      }
      Chosen chosen;
      std::int64_t pages = 0;
      for (const BatchEntry& e : batches.build(decode, prefill)) {
        Request& r = *find(e.id);
        pages += pages_for(r, e.cached + e.query);
        chosen.requests.push_back(&r);
        SequenceTokens part{r.sequence, r.sampler.sequence().subspan(static_cast<std::size_t>(e.cached)), 0, r.adapter};
        if (!r.draft.tokens.empty()) {
          std::vector<TokenId>& all = chosen.drafted.emplace_back(part.tokens.begin(), part.tokens.end());
          all.insert(all.end(), r.draft.tokens.begin(), r.draft.tokens.end());
          part.tokens = all;
        }
        part.tokens = part.tokens.first(static_cast<std::size_t>(e.query));
        if (e.whole) part.logits = 1 + static_cast<std::int64_t>(r.draft.tokens.size());
        chosen.parts.push_back(part);
      }
      const auto holding = std::count_if(running.begin(), running.end(), [](const Request* r) { return r != nullptr; });
      if (make_room(pages) || holding < 2) return chosen;
      if (drafted > 0) {  // drop drafts before preempting a request
        for (Request& r : requests) r.draft.drop();
        continue;
      }
      const auto youngest =
          std::find_if(requests.rbegin(), requests.rend(), [](const Request& r) { return r.sequence >= 0; });
      release(*youngest, false);
      ++statistics.preemptions;
    }
  }

  Request* find(RequestId id) {
    const auto at = std::find_if(requests.begin(), requests.end(), [&](const Request& r) { return r.id == id; });
    return at == requests.end() ? nullptr : &*at;
  }

  // Allocates nothing: short strings hold the text inline.
  static void fail_for_memory(GenerationEvent& e) {
    e.problem = Diagnostic{ErrorCode::OutOfMemory, "none is left", {}, {}};
    e.finish = FinishReason::Failed;
  }

  void finish(Request& r, GenerationEvent& e, FinishReason reason) {
    e.finish = reason;
    r.ended = true;
    e.begun = r.answer();
    try {
      if (!r.stops.found()) {
        std::string rest = r.stops.push(r.rest_of_text());
        rest += r.stops.found() ? std::string() : r.stops.flush();
        e.text += r.unseen(std::move(rest));
      }
    } catch (const std::bad_alloc&) {
      fail_for_memory(e);
    }
    release(r, true);
  }

  // The finish reason after the token of `e`; None when the answer continues.
  FinishReason end_behind(Request& r, const GenerationEvent& e) const {
    if (r.ends(e.token)) return FinishReason::StopToken;
    if (r.stops.found()) return FinishReason::StopString;
    if (r.grammar && r.grammar->must_end()) return FinishReason::GrammarEnd;
    if (r.options.max_new_tokens != 0 && r.size() - r.prompt >= r.options.max_new_tokens)
      return FinishReason::MaxTokens;
    return r.size() >= model.context() ? FinishReason::ContextFull : FinishReason::None;
  }

  static TokenId draw_token(Request& r, std::span<const float> logits) {
    return r.grammar ? r.sampler.draw(logits, r.grammar->mask()) : r.sampler.draw(logits);
  }
  void take_token(Request& r, TokenId token, std::span<const float> logits, GenerationEvent& e) {
    const bool end = r.ends(token);
    std::string text = end ? std::string() : r.text_of(token);
    r.sampler.accept(token);
    ++statistics.generated_tokens;
    e.token = token;
    if (!end) e.text = r.unseen(r.stops.push(text));
    if (r.options.logprobs >= 0)
      e.logprobs = TokenLogprobs{log_probability(logits, token),
                                 likeliest_tokens(logits, static_cast<std::size_t>(r.options.logprobs))};
  }

  // Draws one token. A failure of one answer does not stop the others. Out of memory in the draw leaves the request
  // unchanged; after the draw its state is inconsistent, so the request ends.
  GenerationEvent next_token(Request& r, std::span<const float> logits) {
    GenerationEvent e;
    e.request = r.id;
    FinishReason reason = FinishReason::None;
    try {
      const TokenId token = draw_token(r, logits);
      try {
        take_token(r, token, logits, e);
        e.begun = r.answer();
        reason = end_behind(r, e);
      } catch (const std::bad_alloc&) {
        fail_for_memory(e);
        reason = FinishReason::Failed;
      }
    } catch (const Error& error) {
      e.problem = error.diagnostic();
      reason = FinishReason::Failed;
    }
    if (reason != FinishReason::None) finish(r, e, reason);
    return e;
  }

  // Samples tokens from the logits of a part. It stops after the first token that differs from the draft, so it samples
  // one token more than the draft tokens it accepts.
  void draw(Request& r, std::span<const float> logits) {
    const auto vocab = static_cast<std::size_t>(model.config().vocab_size);
    const std::vector<TokenId> drafted = r.draft.tokens;
    std::size_t right = 0;
    events.reserve(events.size() + drafted.size() + 1);  // no event of a drawn token is lost
    for (std::size_t i = 0; i <= drafted.size(); ++i) {
      events.push_back(next_token(r, logits.subspan(i * vocab, vocab)));
      if (i < drafted.size() && events.back().token == drafted[i]) ++right;
      if (r.ended || right == i) break;
    }
    statistics.drafted_tokens += static_cast<std::int64_t>(drafted.size());
    statistics.accepted_tokens += static_cast<std::int64_t>(right);
    if (r.ended) return;
    r.draft.accept(static_cast<std::int64_t>(right));
    drop_keys_beyond(r);
  }

  // One step. Its events go to `events`, where they stay when the rest of the step fails.
  void step() {
    for (Request& r : requests) {
      if (!r.cancelled || r.ended) continue;
      events.reserve(events.size() + 1);
      GenerationEvent e;
      e.request = r.id;
      finish(r, e, FinishReason::Cancelled);
      events.push_back(std::move(e));
    }
    requests.remove_if([](const Request& r) { return r.ended; });
    admit();
    draft();
    const Chosen chosen = choose();
    if (chosen.parts.empty()) return;
    make_window_room(model.cache(), prefixes ? &*prefixes : nullptr, chosen.parts);
    const Tensor logits = model.forward(chosen.parts);
    ++statistics.runs;
    for (std::size_t i = 0; i < chosen.requests.size(); ++i)
      if (const Request& r = *chosen.requests[i]; r.size() == r.prompt)
        statistics.prompt_tokens += static_cast<std::int64_t>(chosen.parts[i].tokens.size());
    try {
      std::span<const float> left = logits.values<float>();
      for (std::size_t i = 0; i < chosen.requests.size(); ++i) {
        const auto wanted = static_cast<std::size_t>(chosen.parts[i].logits * model.config().vocab_size);
        if (wanted != 0) draw(*chosen.requests[i], left.first(wanted));
        left = left.subspan(wanted);
      }
    } catch (...) {  // requests without a draw run their last tokens again
      for (const Request* r : chosen.requests)
        if (r->sequence >= 0) drop_keys_beyond(*r);
      requests.remove_if([](const Request& r) { return r.ended; });
      throw;
    }
    for (const Request* r : chosen.requests) share_windows(*r);
    requests.remove_if([](const Request& r) { return r.ended; });
  }

  // -- saved conversations --

  PrefixCache& saved_prefixes() {
    if (!prefixes)
      throw Error(ErrorCode::InvalidArgument, "an engine without a prefix cache cannot save or load conversations",
                  "set EngineOptions::prefix_cache");
    return *prefixes;
  }
  std::int64_t save(const std::string& path, const Conversation& conversation) {
    PrefixCache& known = saved_prefixes();
    std::vector<TokenId> tokens = conversation.tokens;
    tokens.push_back(0);  // match_prefix leaves one token
    PrefixMatch match = known.match_prefix(tokens);
    HeldPages pages(model.cache());
    pages.held = std::move(static_cast<KvPages&>(match));
    if (match.partial >= 0) model.cache().pool().release(match.partial);
    save_conversation(path, model, conversation, pages.held, match.tokens);
    return match.tokens;
  }

  Conversation load(const std::string& path) {
    PrefixCache& known = saved_prefixes();
    const ConversationFile file = ConversationFile::open(path, model);
    KvCache& cache = model.cache();
    const std::int64_t page = cache.page();
    KvWindows* windows = cache.windows();
    std::int64_t count = file.cached() / page;
    const bool whole =
        file.restores(count * page) &&
        (!windows || (windows->page() == page && file.first() <= windows->first_needed(count * page) * page));
    if (!whole) count = 0;  // recompute all of it
    HeldPages pages(cache);
    KvPages& held = pages.held;
    held.pages.reserve(static_cast<std::size_t>(count));
    if (!make_room(count))
      throw Error(
          ErrorCode::OutOfMemory,
          concat_text(path, " needs ", count, " pages of the KV cache, but ", model.cache().free_pages(), " are free"),
          "end requests, or load the model with more pages");
    for (std::int64_t i = 0; i < count; ++i) held.pages.push_back(*cache.pool().alloc());
    if (windows && count != 0) {
      held.window_first = windows->first_needed(count * page);
      const std::int64_t needed = count - held.window_first;
      held.window_pages.reserve(static_cast<std::size_t>(needed));
      (void)known.evict_windows(needed - windows->pool().num_free());
      for (std::int64_t i = 0; i < needed; ++i) {
        const std::optional<PageId> free = windows->pool().alloc();
        if (!free)
          throw Error(ErrorCode::OutOfMemory,
                      concat_text(path, " needs ", needed,
                                  " pages of the KV cache of layers with sliding windows, but ", i, " are free"),
                      "end requests, or load the model for more sequences");
        held.window_pages.push_back(*free);
      }
    }
    file.restore(model, held, count * page);
    known.insert(std::span(file.conversation().tokens).first(static_cast<std::size_t>(count * page)), held);
    return file.conversation();
  }

  void forget(RequestId id) {
    if (Request* r = find(id)) release(*r, true);
    requests.remove_if([&](const Request& r) { return r.id == id; });
  }

  std::string generate(RequestId id, const std::function<bool(std::string_view)>& on_text) try {
    std::string all;
    bool wanted = true;
    std::vector<GenerationEvent> mine;
    while (true) {
      step();
      mine.clear();
      for (const GenerationEvent& e : events)
        if (e.request == id) mine.push_back(e);
      std::erase_if(events, [&](const GenerationEvent& e) { return e.request == id; });
      if (mine.empty() && !find(id)) return all;  // another call returned its last event
      for (const GenerationEvent& e : mine) {
        if (e.problem) throw Error(*e.problem);
        const bool more = e.finish == FinishReason::None;
        if (wanted) {  // a step may return more pieces after the last wanted one
          all += e.text;
          wanted = e.text.empty() || !on_text || on_text(e.text);
          if (Request* r = wanted ? nullptr : find(id)) r->cancelled = true;
        }
        if (!more) return all;
      }
    }
  } catch (...) {
    forget(id);
    std::erase_if(events, [&](const GenerationEvent& e) { return e.request == id; });
    throw;
  }
};

Engine::Engine(DecoderModel model, std::shared_ptr<const Tokenizer> tokenizer, EngineOptions options,
               std::optional<DraftModel> draft) try
    : impl_(std::make_unique<Impl>(std::move(model), std::move(tokenizer), options, std::move(draft))) {
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Engine");
}
Engine::~Engine() { CallbackLife::retire(std::move(impl_)); }
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&& other) noexcept {
  if (this != &other) CallbackLife::retire(std::exchange(impl_, std::move(other.impl_)));
  return *this;
}
Engine::Impl& Engine::impl() const {
  if (!impl_)
    throw Error(ErrorCode::InvalidArgument, "an Engine was used after it was moved from",
                "use the object that it was moved to");
  return *impl_;
}

RequestId Engine::submit(std::span<const TokenId> prompt, const GenerationOptions& options) try {
  Impl& e = impl();
  const Impl::Busy mine(e);
  const auto refuse = [](std::string message, std::string hint = {}) {
    throw Error(ErrorCode::InvalidArgument, std::move(message), std::move(hint));
  };
  const auto size = static_cast<std::int64_t>(prompt.size());
  if (size == 0)
    refuse("the prompt has no tokens",
           "begin with the BOS token of the tokeniser; a chat template may have written nothing");
  for (std::size_t i = 0; i < prompt.size(); ++i)
    if (prompt[i] < 0 || prompt[i] >= e.model.config().vocab_size)
      refuse(concat_text("token ", i, " of the prompt is ", prompt[i], ", but the model has ids 0 to ",
                         e.model.config().vocab_size - 1),
             "the tokeniser belongs to another model");
  if (size >= e.model.context())
    refuse(
        concat_text("a prompt of ", size, " tokens leaves no room for an answer in a context of ", e.model.context()),
        "shorten it, or load the model with a larger context");
  for (std::size_t s = 0; s < e.running.size(); ++s)
    if (const std::int64_t held = e.running[s] ? 0 : e.model.length(static_cast<std::int64_t>(s)); held != 0)
      refuse(concat_text("sequence ", s, " of the model has ", held, " tokens from runs outside of the engine"),
             "call reset() of the model first");
  if (options.max_new_tokens < 0)
    refuse(concat_text("max_new_tokens must be 0 or more, got ", options.max_new_tokens),
           "0: generate until the context is full");
  for (const TokenId id : options.stop_tokens)
    if (id < 0 || id >= e.model.config().vocab_size)
      refuse(concat_text("stop token ", id, " is not a token of the model, which has ids 0 to ",
                         e.model.config().vocab_size - 1));
  for (const auto& [id, bias] : options.sampling.logit_bias)
    if (id < 0 || id >= e.model.config().vocab_size)
      refuse(
          concat_text("logit_bias names token ", id, ", but the model has ids 0 to ", e.model.config().vocab_size - 1));
  if (!e.tokenizer && !options.stop.empty()) refuse("stop strings need a tokeniser, but the engine has none");
  const std::vector<std::string>& adapters = e.model.adapters();
  const auto adapter = std::find(adapters.begin(), adapters.end(), options.adapter);
  if (adapter == adapters.end() && !options.adapter.empty())
    refuse(concat_text("no adapter called '", options.adapter, "' is loaded"),
           adapters.empty()
               ? "load adapters with the model: DecoderOptions::adapters"
               : did_you_mean(options.adapter, adapters, concat_text("known are ", quoted_names(adapters))));
  if (!e.tokenizer && options.grammar)
    refuse("a grammar needs a tokeniser, but the engine has none", "give the engine the tokeniser of its model");
  Request r{e.next_id, options, Sampler(options.sampling), std::nullopt, StopStrings(options.stop)};
  r.prompt = size;
  if (options.grammar)
    r.grammar.emplace(
        e.grammars.masks(*options.grammar, *e.tokenizer, e.model.config().vocab_size, options.stop_tokens));
  else if (e.tokenizer)
    r.text.emplace(*e.tokenizer), r.tokenizer = e.tokenizer.get();
  if (adapter != adapters.end()) r.adapter = adapter - adapters.begin();
  r.sampler.accept(prompt);
  const BegunAnswer& begun = options.begun;
  if (begun.tokens < 0 || begun.tokens > size || (begun.surprise_limit && !std::isfinite(*begun.surprise_limit)))
    refuse(concat_text("a prompt of ", size, " tokens cannot end with an answer of ", begun.tokens,
                       " tokens and a Mirostat surprise of ", begun.surprise_limit.value_or(0)));
  if (begun.tokens > 0) r.go_on(prompt.last(static_cast<std::size_t>(begun.tokens)));
  e.requests.push_back(std::move(r));
  return e.next_id++;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Engine::submit");
}

bool Engine::cancel(RequestId request) {
  const Impl::Busy mine(impl());
  Request* r = impl().find(request);
  if (!r || r->cancelled || r->ended) return false;
  return r->cancelled = true;
}
std::vector<GenerationEvent> Engine::step() try {
  Impl& e = impl();
  const Impl::Busy mine(e);
  e.step();
  return std::exchange(e.events, {});
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Engine::step");
}
bool Engine::idle() const { return impl().requests.empty() && impl().events.empty(); }
std::string Engine::generate(std::span<const TokenId> prompt, const GenerationOptions& options,
                             const std::function<bool(std::string_view)>& on_text) try {
  Impl& e = impl();
  const CallbackLife::Call life(e);
  const Impl::Busy mine(e);
  return e.generate(submit(prompt, options), on_text);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Engine::generate");
}
std::int64_t Engine::save(const std::string& path, const Conversation& conversation) const try {
  const Impl::Busy mine(impl());
  return impl().save(path, conversation);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Engine::save");
}
Conversation Engine::load(const std::string& path) try {
  const Impl::Busy mine(impl());
  return impl().load(path);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("Engine::load");
}
const EngineStatistics& Engine::statistics() const { return impl().statistics; }
const DecoderModel& Engine::model() const { return impl().model; }
DecoderModel& Engine::idle_model() {
  Impl& e = impl();
  const Impl::Busy mine(e);
  if (!e.requests.empty())
    throw Error(ErrorCode::InvalidArgument,
                concat_text("the engine still has ", e.requests.size(), " unfinished requests"),
                "wait for them, or cancel them");
  if (e.prefixes) (void)e.prefixes->evict(e.prefixes->num_pages());
  return e.model;
}
const Tokenizer* Engine::tokenizer() const { return impl().tokenizer.get(); }

}  // namespace rlx
