// Drafts by prompt lookup (Saxena 2023, "prompt lookup decoding") and by a smaller model (Leviathan et al. 2023,
// arXiv:2211.17192). Both models draw with the same noise: the Gumbel coupling of Daliri et al. 2024
// (arXiv:2408.07978).
#include "rlx/generation/engine/drafter.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::int64_t kLongestMatch = 32;  // longer matches predict no better
constexpr std::int64_t kLongestPause = 32;  // positions without a draft
constexpr std::int64_t kMostDrafted = 1 << 10;

[[noreturn]] void refuse_draft(std::string message, std::string hint = {}) {
  throw Error(Diagnostic{ErrorCode::InvalidArgument, std::move(message), "speculative decoding", std::move(hint)});
}

void check_draft_vocabulary(const DraftModel& draft, const DecoderModel& model, const Tokenizer* tokenizer) {
  const std::string hint = "the draft model must have the same vocabulary as the model";
  const std::int64_t drafts = draft.decoder.config().vocab_size, all = model.config().vocab_size;
  const auto named = [](const DecoderModel& m) {
    return concat_text(m.config().family, " of ", m.config().vocab_size, " tokens");
  };
  if (!tokenizer || !draft.tokenizer) {
    if (drafts != all)
      refuse_draft(
          concat_text("the draft model, a ", named(draft.decoder), ", does not match the model, a ", named(model)),
          hint);
    return;
  }
  // Models of one tokeniser may have output layers of different padded widths.
  for (std::int64_t id = 0; id < std::min(drafts, all); ++id) {
    const auto token = [&](const Tokenizer& t) {
      return id < t.vocab_size() ? t.id_to_token(static_cast<TokenId>(id)) : std::nullopt;
    };
    const auto mine = token(*tokenizer), theirs = token(*draft.tokenizer);
    if (mine && theirs && *mine != *theirs)
      refuse_draft(concat_text("token ", id, " is '", *theirs, "' in the draft model, a ", named(draft.decoder),
                               ", and '", *mine, "' in the model, a ", named(model)),
                   hint);
  }
}

// The state of the draft's continuation of an answer.
class DraftCourse {
 public:
  explicit DraftCourse(const DraftPlace& place) : ends_(place.ends) {
    if (place.grammar) grammar_.emplace(*place.grammar);
  }
  /// The mask of allowed tokens; empty: all are allowed. Throws when there are none.
  std::span<const std::uint32_t> mask() { return grammar_ ? grammar_->mask() : std::span<const std::uint32_t>(); }
  /// Takes a token of the mask. Returns false when no token may follow it.
  bool accept(TokenId token) {
    if (std::find(ends_.begin(), ends_.end(), token) != ends_.end()) return false;
    if (grammar_) (void)grammar_->accept(token);
    return !grammar_ || !grammar_->must_end();
  }

 private:
  std::span<const TokenId> ends_;
  std::optional<AnswerGrammar> grammar_{};
};

// Truncates a draft to the part that the answer could have.
void cut_draft(const DraftPlace& place) {
  std::vector<TokenId>& tokens = place.draft->tokens;
  DraftCourse course(place);
  std::size_t kept = 0;
  try {
    while (kept < tokens.size()) {
      const std::span<const std::uint32_t> mask = course.mask();
      const auto v = static_cast<std::size_t>(tokens[kept]);
      if (!mask.empty() && (mask[v / 32] >> (v % 32) & 1U) == 0) break;
      if (!course.accept(tokens[kept++])) break;
    }
  } catch (const Error&) {
    // no token may follow
  }
  tokens.resize(kept);
}

// A sampler that draws ahead, and rewinds at the end.
class DrawsAhead {
 public:
  explicit DrawsAhead(Sampler& sampler) : sampler_(&sampler), before_(sampler.mark()) {}
  ~DrawsAhead() {
    if (sampler_) sampler_->return_to(before_);
  }
  DrawsAhead(DrawsAhead&& other) noexcept : sampler_(std::exchange(other.sampler_, nullptr)), before_(other.before_) {}
  DrawsAhead& operator=(DrawsAhead&&) = delete;

 private:
  Sampler* sampler_;
  Sampler::Mark before_;
};

}  // namespace

std::vector<TokenId> lookup_draft(std::span<const TokenId> sequence, std::int64_t least, std::int64_t count) {
  if (least < 1 || count < 0)
    refuse_draft(concat_text("prompt lookup needs a match of at least 1 token and a draft of at least 0, got ", least,
                             " and ", count));
  const auto size = static_cast<std::int64_t>(sequence.size());
  const auto token = [&](std::int64_t i) { return sequence[static_cast<std::size_t>(i)]; };
  std::int64_t best = 0, from = 0;
  const std::int64_t most = std::max(least, kLongestMatch);
  for (std::int64_t end = size - 1; end > best && best < most; --end) {
    std::int64_t same = 0;
    while (same < std::min(end, most) && token(end - 1 - same) == token(size - 1 - same)) ++same;
    if (same > best) best = same, from = end;
  }
  std::vector<TokenId> draft;
  if (best < least) return draft;
  for (std::int64_t i = from; i < from + count; ++i)
    draft.push_back(i < size ? token(i) : draft[static_cast<std::size_t>(i - size)]);
  return draft;
}

std::int64_t DraftLength::next(std::int64_t most) {
  if (rest_ > 0) return --rest_, 0;
  return std::min(length_, most);
}
void DraftLength::update(std::int64_t drafted, std::int64_t accepted) {
  if (drafted == 0) return;
  // A draft may have been truncated by the end of the answer or by its budget; that says nothing about longer drafts.
  if (accepted == drafted)
    length_ = std::min(kMostDrafted, std::max(length_, 2 * drafted));
  else
    length_ = accepted + 1;
  if (accepted > 0)
    pause_ = 0;
  else
    rest_ = pause_ = std::min(kLongestPause, std::max<std::int64_t>(1, 2 * pause_));
}

void Draft::accept(std::int64_t accepted) {
  if (source) source->update(static_cast<std::int64_t>(tokens.size()), accepted);
  drop();
}
void Draft::drop() {
  tokens.clear();
  source = nullptr;
}

Drafter::Drafter(const DraftOptions& options, std::optional<DraftModel> draft, const DecoderModel& model,
                 const Tokenizer* tokenizer)
    : options_(options), vocab_(model.config().vocab_size) {
  if (options.tokens < 0 || options.tokens > kMostDrafted)
    refuse_draft(concat_text("the draft length must be in [0, ", kMostDrafted, "], got ", options.tokens));
  if (options.lookup < 0)
    refuse_draft(concat_text("lookup must be 0 or more, got ", options.lookup),
                 "0: off; else the least number of tokens that must match");
  if (!draft) return;
  const std::int64_t sequences = draft->decoder.cache().sequences(), wanted = model.cache().sequences();
  if (sequences < wanted)
    refuse_draft(concat_text("the draft model has a cache for ", sequences, sequences == 1 ? " sequence" : " sequences",
                             ", the model for ", wanted),
                 "load the draft model with the same number of sequences (DecoderOptions::sequences)");
  check_draft_vocabulary(*draft, model, tokenizer);
  model_.emplace(std::move(draft->decoder));
  prefixes_.emplace(model_->cache());
  batches_.emplace(model_->max_tokens(), sequences);
}

void Drafter::draft(std::span<const DraftPlace> places) {
  std::vector<DraftPlace> left;
  for (DraftPlace p : places) {
    p.draft->drop();
    if (p.answers && options_.lookup > 0) {
      const std::int64_t count = p.draft->lookup.next(p.most);
      if (count > 0) {
        p.draft->tokens = lookup_draft(p.sampler->sequence(), options_.lookup, count);
        cut_draft(p);
      }
      if (!p.draft->tokens.empty()) {
        p.draft->source = &p.draft->lookup;
        continue;
      }
    }
    if (!model_) continue;
    if (p.answers) {
      p.most = p.draft->model.next(p.most);
      p.draft->source = &p.draft->model;
    }
    if (!p.answers || p.most > 0) left.push_back(p);
  }
  if (!left.empty()) run_model(left);
}

// Evicts cached pages that no sequence uses.
bool Drafter::make_room(std::int64_t sequence, std::int64_t tokens) {
  KvCache& cache = model_->cache();
  const std::int64_t all = cache.length(sequence) + tokens;
  if (all > cache.context()) return false;
  const std::int64_t missing = (all + cache.page() - 1) / cache.page() -
                               static_cast<std::int64_t>(cache.table(sequence).size()) - cache.free_pages();
  return missing <= 0 || prefixes_->evict(missing) == missing;
}

void Drafter::run_model(std::span<const DraftPlace> places) {
  KvCache& cache = model_->cache();
  // First runs what the draft model has not seen of each text: the last tokens of answers, then prompts in chunks.
  std::deque<BatchRequest> few, many;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const DraftPlace& p = places[i];
    const auto tokens = p.sampler->sequence();
    const auto size = static_cast<std::int64_t>(tokens.size());
    truncate(p.sequence, size > cache.context() ? 0 : p.answers ? size - 1 : size);  // the rest is an untried draft
    if (size > cache.context()) continue;
    if (cache.length(p.sequence) == 0) {
      const PrefixMatch match = prefixes_->match_prefix(tokens);
      if (match.partial >= 0) cache.pool().release(match.partial);
      cache.adopt(p.sequence, match);
    }
    const std::int64_t done = cache.length(p.sequence), left = size - done;
    if (left < 1) continue;  // a prompt that the draft model has finished
    const auto unknown = [&](TokenId t) { return t >= model_->config().vocab_size; };  // padding ids of the target
    if (std::any_of(tokens.begin() + done, tokens.end(), unknown)) continue;
    const bool soon = p.answers && left <= std::min(model_->max_tokens(), 2 * options_.tokens);
    (soon ? few : many).push_back({static_cast<std::int64_t>(i), left, done});
  }
  struct Drawing {
    const DraftPlace* place;
    DrawsAhead ahead;
    DraftCourse course;
  };
  std::vector<Drawing> drawing;
  std::vector<SequenceTokens> parts;
  // Reserves the pages of a part at once, so that none is promised twice. `run` frees and takes them again.
  const auto add = [&](const DraftPlace& p, std::int64_t from, std::int64_t count, bool draws) {
    if (!make_room(p.sequence, count)) return false;
    cache.append(p.sequence, count);
    parts.push_back({p.sequence,
                     p.sampler->sequence().subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(count)),
                     draws ? 1 : 0});
    return true;
  };
  const auto run = [&] {
    for (const SequenceTokens& part : parts)
      cache.truncate(part.sequence, cache.length(part.sequence) - static_cast<std::int64_t>(part.tokens.size()));
    make_window_room(cache, &*prefixes_, parts);
    const Tensor logits = model_->forward(parts);
    parts.clear();
    return logits;
  };
  for (const BatchEntry& e : batches_->build(few, many)) {
    const DraftPlace& p = places[static_cast<std::size_t>(e.id)];
    const bool draws = e.whole && p.answers;
    if (!add(p, e.cached, e.query, draws))
      cache.truncate(p.sequence, 0);  // if all sequences kept their pages while they wait for more, none would ever run
    else if (draws)
      drawing.push_back({&p, DrawsAhead(*p.sampler), DraftCourse(p)});
  }

  std::vector<float> row(static_cast<std::size_t>(vocab_), -std::numeric_limits<float>::infinity());
  const auto width = static_cast<std::size_t>(model_->config().vocab_size);
  while (!parts.empty()) {
    const Tensor logits = run();
    std::vector<Drawing> more;
    for (std::size_t i = 0; i < drawing.size(); ++i) {
      const DraftPlace& p = *drawing[i].place;
      const auto values = logits.values<float>().subspan(i * width, width);
      std::copy_n(values.begin(), std::min(width, row.size()), row.begin());
      try {
        p.draft->tokens.push_back(p.sampler->draw(row, drawing[i].course.mask()));
        p.sampler->accept(p.draft->tokens.back());
        if (!drawing[i].course.accept(p.draft->tokens.back())) continue;
      } catch (const Error&) {
        continue;  // the draft ends where no token can follow; the answer does not fail
      }
      if (static_cast<std::int64_t>(p.draft->tokens.size()) == p.most) continue;
      const auto size = static_cast<std::int64_t>(p.sampler->sequence().size());
      if (add(p, size - 1, 1, true)) more.push_back(std::move(drawing[i]));
    }
    drawing = std::move(more);
  }
}

void Drafter::truncate(std::int64_t sequence, std::int64_t size) {
  if (!model_ || model_->length(sequence) <= size) return;
  // Where sliding-window layers freed the earlier keys, the text is run again.
  model_->truncate(size < model_->cache().shortest(sequence) ? 0 : size, sequence);
}

void Drafter::release(std::int64_t sequence, std::span<const TokenId> tokens) {
  if (!model_) return;
  truncate(sequence, static_cast<std::int64_t>(tokens.size()) - 1);
  KvCache& cache = model_->cache();
  try {
    prefixes_->insert(tokens.first(static_cast<std::size_t>(cache.length(sequence))), cache.held(sequence));
  } catch (const std::bad_alloc&) {
    // pages that are not kept are recomputed
  }
  cache.truncate(sequence, 0);
}

}  // namespace rlx
