"""Hugging Face decoders as pipeline stages (extra ``hf``).

In the order in which they are used: :mod:`.loading` gets weights; :mod:`.given`, :mod:`.plan`,
:mod:`.rotary` and :mod:`.stage` cut a model into stages; :mod:`.kv` is the cache that the graphs
write; :mod:`.runners` has the modules that generated runners call, one for each kind of attention.
Beneath them :mod:`.attention` and :mod:`.kernels` compute packed and cached attention, and
:mod:`.hook` puts it in the place of the model's own. Families that need more than that have a
module each: :mod:`.sliding` (a pool of its own for layers with a window), :mod:`.seq2seq`
(cross-attention over pooled rows of an encoder), :mod:`.deepstack` (image features added after the
first layers), the last two with stages of their own by :mod:`.sharing`. :mod:`.probe` finds out
whether a family can be cut at all.
"""
