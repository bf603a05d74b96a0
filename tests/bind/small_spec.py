"""A spec whose numbers come from everywhere, and a config for it."""

SPEC = """\
version: 1
family: small
dims:
  hidden: config.text.hidden
  block: config.block
  kv_rows: build
  wide: hidden * 2
options: {lora: false, mode: {type: enum, choices: [plain, wide], default: plain}}
parallel: {tp: build}
axes:
  tokens: {max: 8, live: batch.num_tokens}
state:
  kv: {rows: kv_rows, reserved: [0]}
pipeline:
  layers: {count: config.layers, kinds: {even: {if: layer % 2 == 0},
    full: {where: config.types, is: f}}}
  boundary:
    - {name: hidden_states, axis: tokens, shape: [tokens, hidden], dtype: model, padding: zero}
    - {name: blocks, axis: tokens, shape: [tokens, "ceil(cut.layer / block)", hidden], dtype: model,
       padding: zero}
    - {name: picks, axis: tokens, dtype: int32, padding: zero, when: cut.layer in kinds.full}
    - {name: seen, axis: tokens, shape: [tokens, "kinds.even.below(cut.layer)"], dtype: int32,
       padding: zero, when: cut.layer in kinds.even}
runners:
  step:
    buckets: {tokens: [4, 8]}
    slots:
      - {name: ids, axis: tokens, dtype: int64, padding: zero, source: batch.ids, residency: host,
         stages: first, role: index, of: hidden}
      - {name: written, axis: tokens, dtype: int64, padding: zero, role: write_index, of: state.kv,
         source: batch.written, residency: host}
      - {name: bias, axis: tokens, shape: [tokens, "wide // tp.size"], dtype: model,
         padding: {fill: hidden - 1}, source: batch.bias}
      - {name: lora, axis: tokens, dtype: int32, padding: zero, source: batch.lora,
         when: "options.lora or options.mode == 'wide'"}
    forward:
      first: {ids: slot.ids, written: slot.written, bias: slot.bias, lora: slot.lora}
      later: {written: slot.written, bias: slot.bias, lora: slot.lora, x: boundary}
    outputs: {last: [{name: out, axis: tokens, shape: [tokens, hidden], dtype: model}]}
"""
CONFIG = {"text": {"hidden": 16}, "block": 2, "layers": 6, "types": "fsfsfs"}
