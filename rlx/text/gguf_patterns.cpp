// The patterns by name, as the tokenizer.json files of these models have them.
#include "rlx/text/gguf_patterns.h"

namespace rlx {
namespace {

using Patterns = std::string_view;

#define RLX_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define RLX_LINES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define RLX_SIGNS " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
#define RLX_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define RLX_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define RLX_ASCII_SIGNS "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]"

constexpr std::string_view kGpt2Words =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kLlama3Words =
    RLX_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|" RLX_SIGNS RLX_LINES;
constexpr std::string_view kQwen2Words = RLX_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|" RLX_SIGNS RLX_LINES;
constexpr std::string_view kQwen35Words =
    RLX_CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" RLX_LINES;
constexpr std::string_view kTekkenWords = "[^\\r\\n\\p{L}\\p{N}]?" RLX_UPPER "*" RLX_LOWER
                                          "+|[^\\r\\n\\p{L}\\p{N}]?" RLX_UPPER "+" RLX_LOWER
                                          "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" RLX_LINES;
constexpr std::string_view kGpt4oWords =
    "[^\\r\\n\\p{L}\\p{N}]?" RLX_UPPER "*" RLX_LOWER "+" RLX_CONTRACTIONS "?|[^\\r\\n\\p{L}\\p{N}]?" RLX_UPPER
    "+" RLX_LOWER "*" RLX_CONTRACTIONS "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" RLX_LINES;
constexpr std::string_view kDeepseek3Words =
    RLX_ASCII_SIGNS "[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" RLX_LINES;
// Letters with case but for those that newer versions of Unicode added; the model was trained so.
constexpr std::string_view kDeepseekLetters =
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴ"
    "ῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+";

#undef RLX_CONTRACTIONS
#undef RLX_LINES
#undef RLX_SIGNS
#undef RLX_UPPER
#undef RLX_LOWER
#undef RLX_ASCII_SIGNS

constexpr Patterns kDefault[] = {"[\\p{P}\\$\\+<=>\\^~\\|]+", kGpt2Words, "\\p{N}+", "[0-9][0-9][0-9]"};
constexpr Patterns kGpt2[] = {kGpt2Words};
constexpr Patterns kDigits[] = {"\\p{N}", kGpt2Words};
constexpr Patterns kLlama3[] = {kLlama3Words};
constexpr Patterns kQwen2[] = {kQwen2Words};
constexpr Patterns kQwen35[] = {kQwen35Words};
constexpr Patterns kTekken[] = {kTekkenWords};
constexpr Patterns kGpt4o[] = {kGpt4oWords};
constexpr Patterns kDeepseek3[] = {"\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", kDeepseek3Words};
constexpr Patterns kDeepseekLlm[] = {"[\\r\\n]", kDeepseekLetters, "\\s?[!-/:-~！-／：-～‘-‟　-。]+",
                                     "\\s+$",    "[一-龥ࠀ-一가-퟿]+", "\\p{N}+"};
constexpr Patterns kDeepseekCoder[] = {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[一-龥ࠀ-一가-퟿]+", "\\p{N}"};
constexpr Patterns kFalcon[] = {"[\\p{P}\\$\\+<=>\\^~\\|`]+", kGpt2Words, "[0-9][0-9][0-9]"};
constexpr Patterns kBloom[] = {" ?[^(\\s|.,!?…。，、।۔،)]+"};
constexpr Patterns kViking[] = {" ?[^(\\s|.,!?…。，、।۔،)]+", "\\p{N}"};
constexpr Patterns kLineRuns[] = {"[^\\n]+|[\\n]+"};

constexpr GgufPreTokenizer kPreTokenizers[] = {
    {"default", kDefault},
    {"gpt-2", kGpt2},
    {"phi-2", kGpt2},
    {"mpt", kGpt2},
    {"olmo", kGpt2},
    {"jais", kGpt2},
    {"trillion", kGpt2},
    {"granite-docling", kGpt2},
    {"gigachat", kGpt2},
    {"exaone4", kGpt2},
    {"modern-bert", kGpt2},
    {"jina-es", kGpt2},
    {"jina-de", kGpt2},
    {"jina-v2-es", kGpt2},
    {"jina-v2-de", kGpt2},
    {"jina-v1-en", kGpt2},
    {"jina-v2-code", kGpt2},
    {"roberta-bpe", kGpt2},
    {"starcoder", kDigits},
    {"refact", kDigits},
    {"command-r", kDigits},
    {"smollm", kDigits},
    {"codeshell", kDigits},
    {"exaone", kDigits},
    {"minerva-7b", kDigits},
    {"llama3", kLlama3, true, true},
    {"llama-v3", kLlama3, true, true},
    {"llama-bpe", kLlama3, true, true},
    {"falcon3", kLlama3, true, true},
    {"falcon-h1", kLlama3, true, true},
    {"pixtral", kLlama3, true, true},
    {"lfm2", kLlama3, true, true},
    {"dbrx", kLlama3},
    {"smaug-bpe", kLlama3},
    {"chatglm-bpe", kLlama3},
    {"glm4", kLlama3, true},
    {"qwen2", kQwen2},
    {"deepseek-r1-qwen", kQwen2},
    {"stablelm2", kQwen2},
    {"hunyuan", kQwen2},
    {"megrez", kQwen2},
    {"grok-2", kQwen2},
    {"qwen35", kQwen35},
    {"tekken", kTekken, true, true},
    {"gpt-4o", kGpt4o},
    {"llama4", kGpt4o},
    {"minimax-m2", kGpt4o},
    {"deepseek-v3", kDeepseek3},
    {"hunyuan-dense", kDeepseek3},
    {"deepseek-llm", kDeepseekLlm},
    {"deepseek-coder", kDeepseekCoder},
    {"falcon", kFalcon},
    {"poro-chat", kBloom},
    {"bloom", kBloom},
    {"gpt3-finnish", kBloom},
    {"viking", kViking},
    {"gemma4", kLineRuns, false, false, false},
};

}  // namespace

const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name) {
  if (name.empty()) name = "default";
  for (const GgufPreTokenizer& p : kPreTokenizers)
    if (p.name == name) return &p;
  return nullptr;
}

}  // namespace rlx
