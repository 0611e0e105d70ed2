// Runs an automaton over bytes. It keeps all stacks that a text may have, hash-consed as numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "rlx/generation/grammar/automaton.h"

namespace rlx {

/// A hash index of numbers for values that are stored elsewhere.
class NumberIndex {
 public:
  /// The number added with `hash` for which `equal` holds; otherwise adds `next` and returns it.
  template <class Equal>
  std::uint32_t find_or_add(std::uint64_t hash, std::uint32_t next, const Equal& equal) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    for (std::size_t at = slot_of(hash);; at = (at + 1) & (slots_.size() - 1)) {
      Slot& s = slots_[at];
      if (s.number == kFree) {
        s = {hash, next};
        ++count_;
        return next;
      }
      if (s.hash == hash && equal(s.number)) return s.number;
    }
  }
  std::size_t bytes() const { return slots_.size() * sizeof(Slot); }

 private:
  static constexpr std::uint32_t kFree = 0xFFFFFFFF;
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t number = kFree;
  };
  std::size_t slot_of(std::uint64_t hash) const {
    return static_cast<std::size_t>((hash * 0x9E3779B97F4A7C15u) >> 32) & (slots_.size() - 1);
  }
  void grow();
  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

/// A set of keys with constant-time clear.
class KeySet {
 public:
  void clear();
  /// Returns true when `key` was not in the set.
  bool add(std::uint64_t key);

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t epoch = 0;
  };
  void grow();
  std::vector<Slot> slots_ = std::vector<Slot>(64);
  std::uint32_t epoch_ = 1;
  std::size_t count_ = 0;
};

/// A frame is a call of a rule: the states to continue at when the rule ends, each with its own frame. Calls of a rule
/// at the same position share a frame however they were reached, so ambiguity does not multiply stacks (Tomita's graph
/// structured stacks, with frames by rule and position as in Scott and Johnstone's GLL). A configuration is the set of
/// all states that read the next byte, each in its frame. Frames and configurations with equal content share one
/// number, and each step between configurations is memoised in a table.
class StackMachine {
 public:
  using Config = std::uint32_t;
  using Frame = std::uint32_t;
  struct Item {
    StateId state = kDone;
    Frame frame = 0;
    auto operator<=>(const Item&) const = default;
  };
  static constexpr Config kDead = 0;
  static constexpr Frame kBottom = 0;   // the empty stack: when it ends, the text may end
  static constexpr Frame kUnknown = 1;  // the stack below is unknown

  explicit StackMachine(std::shared_ptr<const Automaton> automaton);

  /// The configuration before the first byte.
  Config start();
  /// A configuration with only `state`, in a frame with unknown stack below.
  Config alone(StateId state);
  Config step(Config from, std::uint8_t byte) {
    const std::size_t at = std::size_t{from} * num_classes_ + automaton_->byte_class[byte];
    return steps_[at] != kNotYet ? steps_[at] : make_step(from, byte);
  }
  /// The configuration after `frame` ends; empty for kBottom and kUnknown.
  Config after(Frame frame);

  /// Whether the text may end here.
  bool can_end(Config c) const { return configs_[c].can_end; }
  /// Whether the unknown frame may end here.
  bool leaves_unknown(Config c) const { return configs_[c].leaves_unknown; }
  std::span<const Item> items(Config c) const { return {items_.data() + configs_[c].begin, configs_[c].size}; }
  /// The only possible next byte; -1 where there are several or none, or where the text may end.
  int only_byte(Config c) const;

  /// Imports configurations of another machine of the same automaton.
  std::vector<Config> adopt(const StackMachine& other, std::span<const Config> configs);

  /// Sets the budget of the following calls in elementary steps. They throw Unsupported when it is exceeded.
  void set_budget(std::uint64_t steps) { budget_ = steps; }
  /// Counts a visited node of the vocabulary tree. Eight nodes are a step.
  void spend_walk() {
    if ((++walked_ & 7U) == 0) spend(1);
  }
  std::size_t bytes() const;
  std::size_t num_configs() const { return configs_.size(); }

 private:
  struct StoredFrame {
    std::uint32_t begin = 0, size = 0;        // its range of returns
    std::uint32_t group = 0, group_size = 1;  // mutually recursive frames are stored together
  };
  struct StoredConfig {
    std::uint32_t begin = 0, size = 0;
    bool can_end = false, leaves_unknown = false;
  };
  // A frame of the current position whose returns are still being collected.
  struct Fresh {
    RuleId rule = 0;
    std::vector<Item> returns{};
    bool ended = false;          // the rule can match here without a byte: later callers continue at once
    std::uint8_t color = 0;      // of the cycle search
    std::uint32_t position = 0;  // in fresh_order_
    Frame stored = 0;
  };
  static constexpr std::uint32_t kNotYet = 0xFFFFFFFF;
  static constexpr Frame kFresh = 0x80000000;  // bit of frame numbers that index fresh_

  Config make_step(Config from, std::uint8_t byte);
  void spend(std::uint64_t steps);
  // The configuration of `items` after calls are made and ended rules are left.
  Config settle(std::span<const Item> items);
  void add_item(StateId state, Frame frame);
  void end_frame(Frame frame);
  void call(RuleId rule, StateId target, Frame frame);
  std::span<const Item> returns(Frame f) const { return {returns_.data() + frames_[f].begin, frames_[f].size}; }
  std::span<const Item> current_returns(Frame f) const {
    return (f & kFresh) != 0 ? std::span<const Item>(fresh_[f & ~kFresh].returns) : returns(f);
  }
  std::vector<Item> without_detours(std::uint32_t fresh);
  void store_fresh();
  bool order_fresh(std::uint32_t root);
  void store_group();
  Frame intern_frames(std::span<const std::vector<Item>> group);
  Config intern_config(std::vector<Item>& items, bool can_end, bool leaves_unknown);

  std::shared_ptr<const Automaton> automaton_;
  std::size_t num_classes_;
  std::uint64_t budget_ = ~std::uint64_t{0};
  std::uint32_t walked_ = 0;

  std::vector<StoredFrame> frames_;
  std::vector<Item> returns_;
  std::vector<Config> afters_;  // by frame
  NumberIndex frame_index_;
  std::vector<StoredConfig> configs_;
  std::vector<Item> items_;
  std::vector<Config> steps_;  // [configs, classes]
  NumberIndex config_index_;

  // State of the current position.
  KeySet seen_;
  std::vector<Item> kernel_, work_, found_;
  std::vector<Fresh> fresh_;
  std::size_t num_fresh_ = 0;
  std::vector<std::uint32_t> fresh_of_rule_, fresh_epoch_;  // by rule
  std::uint32_t epoch_ = 0;
  std::vector<std::uint32_t> fresh_order_;  // the needed frames, parents first
  bool can_end_ = false, leaves_unknown_ = false;
};

}  // namespace rlx
