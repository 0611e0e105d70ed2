// Runs an automaton over bytes: all stacks that a text may have at once, as numbers that are equal when the stacks are.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "rlx/generation/grammar/automaton.h"

namespace rlx {

/// Numbers by hash, for values that live elsewhere.
class NumberIndex {
 public:
  /// The number for which `equal` holds among those added with `hash`, or `next`, which is added.
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

/// A set of keys that is emptied in no time.
class KeySet {
 public:
  void clear();
  /// Whether `key` was not in it.
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

/// A frame stands for a rule that is being matched: where to go on when it has ended, in which frames below. Rules that
/// were called at the same place share a frame however they were reached, so ambiguity costs no stacks (Tomita's graph
/// structured stacks, with frames by rule and place as in Scott and Johnstone's GLL). A configuration is all that a
/// text may be in: states that read bytes, each in its frame. Frames and configurations with equal content have one
/// number, and a step from one to the next is remembered: what was seen once is a table from then on.
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
  static constexpr Frame kBottom = 0;   // below it nothing: when it ends, the text may end
  static constexpr Frame kUnknown = 1;  // nobody says what is below

  explicit StackMachine(std::shared_ptr<const Automaton> automaton);

  /// Before the first byte.
  Config start();
  /// About to read a byte by the edges of `state`, in a frame of which nothing is known.
  Config alone(StateId state);
  Config step(Config from, std::uint8_t byte) {
    const std::size_t at = std::size_t{from} * num_classes_ + automaton_->byte_class[byte];
    return steps_[at] != kNotYet ? steps_[at] : make_step(from, byte);
  }
  /// Where things go on when `frame` ends; nowhere below kBottom and kUnknown.
  Config after(Frame frame);

  /// Whether the text may end here.
  bool can_end(Config c) const { return configs_[c].can_end; }
  /// Whether the unknown frame may end here.
  bool leaves_unknown(Config c) const { return configs_[c].leaves_unknown; }
  std::span<const Item> items(Config c) const { return {items_.data() + configs_[c].begin, configs_[c].size}; }
  /// The byte that must follow, or -1 where there are several, or none, or the text may end.
  int only_byte(Config c) const;

  /// Configurations of another machine of the same automaton in this one.
  std::vector<Config> adopt(const StackMachine& other, std::span<const Config> configs);

  /// What the calls that follow may do together, in elementary steps; they throw Unsupported when it is not enough.
  void set_budget(std::uint64_t steps) { budget_ = steps; }
  /// Counts a node of a vocabulary that was looked at, of which eight are a step.
  void spend_walk() {
    if ((++walked_ & 7U) == 0) spend(1);
  }
  std::size_t bytes() const;
  std::size_t num_configs() const { return configs_.size(); }

 private:
  struct StoredFrame {
    std::uint32_t begin = 0, size = 0;        // of its returns
    std::uint32_t group = 0, group_size = 1;  // frames that lead to one another are stored together
  };
  struct StoredConfig {
    std::uint32_t begin = 0, size = 0;
    bool can_end = false, leaves_unknown = false;
  };
  // A frame of the place at hand, whose returns are still being found.
  struct Fresh {
    RuleId rule = 0;
    std::vector<Item> returns{};
    bool ended = false;          // what called it later goes on at once
    std::uint8_t color = 0;      // of the search for cycles
    std::uint32_t position = 0;  // in fresh_order_
    Frame stored = 0;
  };
  static constexpr std::uint32_t kNotYet = 0xFFFFFFFF;
  static constexpr Frame kFresh = 0x80000000;  // bit of frames that are numbers of fresh_

  Config make_step(Config from, std::uint8_t byte);
  void spend(std::uint64_t steps);
  // The configuration reached with `items`: calls made, ended rules left.
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

  // Of the place at hand.
  KeySet seen_;
  std::vector<Item> kernel_, work_, found_;
  std::vector<Fresh> fresh_;
  std::size_t num_fresh_ = 0;
  std::vector<std::uint32_t> fresh_of_rule_, fresh_epoch_;  // by rule
  std::uint32_t epoch_ = 0;
  std::vector<std::uint32_t> fresh_order_;  // those that are needed, parents first
  bool can_end_ = false, leaves_unknown_ = false;
};

}  // namespace rlx
