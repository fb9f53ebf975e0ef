"""What the first pages of xgrammar's documents do: grammars are compiled, matched token by token, and say which tokens may come next."""

import json
import string

import torch
import xgrammar as xgr

vocabulary = [*string.printable, "true", "false", "null", '"name"', '": "', "Ada", "name", "age", "</s>"]
tokens = xgr.TokenizerInfo(vocabulary, vocab_type=xgr.VocabType.RAW, stop_token_ids=[len(vocabulary) - 1])
compiler = xgr.GrammarCompiler(tokens, max_threads=2)
schema = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name", "age"]}
grammars = {
    "json": (compiler.compile_builtin_json_grammar(), ['{"a": [1, true]}', "[null]", "{a}"]),
    "schema": (compiler.compile_json_schema(json.dumps(schema)), ['{"name": "Ada", "age": 36}', '{"age": 1}']),
    "regex": (compiler.compile_regex("[a-z]+[0-9]{2}"), ["ab12", "12"]),
    "ebnf": (compiler.compile_grammar('root ::= "yes" | "no" tail\ntail ::= [!?] tail | ""'), ["yes", "no!?", "maybe"]),
}


def allowed(matcher):
    """The tokens that may come next."""
    mask = xgr.allocate_token_bitmask(1, len(vocabulary))
    matcher.fill_next_token_bitmask(mask)
    logits = torch.zeros(1, len(vocabulary))
    xgr.apply_token_bitmask_inplace(logits, mask)
    return [token for token, logit in zip(vocabulary, logits[0].tolist()) if logit == 0]


for name, (grammar, texts) in grammars.items():
    for text in texts:
        matcher = xgr.GrammarMatcher(grammar)
        taken = 0
        while taken < len(text) and matcher.accept_token(vocabulary.index(text[taken])):
            taken += 1
        print(name, repr(text), taken, matcher.accept_string("") and len(allowed(matcher)), matcher.find_jump_forward_string())
print(str(xgr.Grammar.from_json_schema(json.dumps(schema)))[:200])
for wrong in ("root ::= [", "root ::= none"):
    try:
        compiler.compile_grammar(wrong)
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0].rpartition("error at ")[2][-60:])
try:
    xgr.Grammar.from_json_schema('{"type": 1}')
except Exception as error:
    print(type(error).__name__, str(error).splitlines()[0].rpartition(": ")[2])
print(json.loads(compiler.compile_regex("a+b").grammar.serialize_json()) is not None)
