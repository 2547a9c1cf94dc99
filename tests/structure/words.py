"""The word rule: which function names are a bare participle.

A name is cut into its words. Words at its beginning that only join (``as``, ``not``, ``by``) are
passed over, and whatever follows the next joining word is left aside: ``as_printed`` -> printed,
``asked_for`` -> asked, ``mapped_by_place`` -> mapped. What remains is a bare participle where its
last word is one and its first is no verb:

    opened, found, _joined, drawing    the whole name
    carried_out, sampled_as_printed    with words that only join
    epsilon_asked, rows_joined         after a noun: the only verb is the participle

It is none where a noun follows (``sorted_rows``, ``expected_norm``: names of values), or where the
name begins with a verb (``check_opened``, ``is_sorted``, ``has_changed``). Past forms such as
``saw`` and ``drew`` count as well. Words that are verbs as they stand (``read``, ``split``,
``set``, ``run``) never do.
"""

from __future__ import annotations

import re


def _read(text: str) -> frozenset[str]:
    return frozenset(text.split())


IRREGULAR = _read("""
    arisen arose ate awoke awoken beaten became been began begun bent bidden bit bitten bled blew
    blown bore born borne bought bred broke broken brought built burnt came caught chose chosen
    clung crept dealt did done drank drawn dreamt drew driven drove drunk dug eaten fallen fed fell
    felt fled flew flown forbade forbidden forgave forgot forgotten fought found froze frozen gave
    given gone got gotten grew grown held heard hid hidden hung kept knelt knew known laid lain led
    leant leapt learnt left lent lit lost made meant met mistaken mown overcame paid proven ran
    rang ridden risen rode rose rung said sang sank sat saw sawn seen sent sewn shaken shone shook
    shorn shot shown shrank shrunk slain slept slid slung smelt sold sought sown spat sped spelt
    spent spoilt spoke spoken sprang sprung spun stole stolen stood strewn stricken striven strode
    strove struck strung stuck stung sung sunk swam swept swollen swore sworn swum swung taken
    taught thought threw thrived thrown told took tore torn trod trodden understood went wept woke
    woken won wore worn wove woven written wrote wrung
""")
PREFIXES = ("un", "re", "over", "under", "out", "mis", "fore", "with", "up", "pre")

# Words that end as participles do and are none: nouns, adjectives, numbers.
NOT_PARTICIPLES = _read("""
    biped crooked embed hatred hundred infrared kindred moped naked rugged sacred wicked
    bit present relent
    handed shaped sided valued
    beginning building ceiling clipping coding covering crossing during embedding encoding
    ending evening finding heading mapping meaning morning nothing ordering packing padding
    ranking rating rounding sampling setting sibling spacing spelling string timing training
    tuning warning weighting wording anything everything something accounting batching
    processing
""")
# Words in "eed" are nouns and plain verbs (seed, speed, need, exceed), but for these.
PARTICIPLES_IN_EED = _read("agreed decreed disagreed freed guaranteed refereed")

# Letters that number things: ``printed_a`` is ``printed``.
LABELS = ("a", "b", "c")

# Words that join or colour and name nothing.
JOINING = _read("""
    above after again ahead alike all alone along already also always an and any apart around as
    at away back before behind below between beyond both by ever every everywhere for forth from
    further how if in inside into just later long many more most much never no not now of off on
    once only onto or out outside over per so still than that the then this through to together
    too twice under unless until up upon well when where whether which while who with within
    without yet
""")

# Words that are verbs as they stand: a name that begins with one says what is done.
VERBS = _read("""
    accept add adjust admit allow analyse annotate append apply are ask assemble assert assign
    attach attack audit be become begin bind bring build calibrate call can carry catch certify
    check choose clean clear clip close coerce collect combine compare compile complete compose
    compress compute condense confirm connect convert copy could create cut decide declare decode
    delete deny derive describe detect diagnose digest discard divide do does download draw drop
    emit encode end ensure enter escape estimate evaluate examine exclude execute expand expect
    explain export extract fail fetch fill filter find finish fit flatten follow forbid forget
    format gather generate get give guard had handle has hash have hear hide hold ignore import
    improve include insert inspect install invert is iterate join judge keep know launch learn let
    list listen load locate lock look lower make may merge might minimise modify move must need
    needs normalise note observe obtain offer open pad parse pass pay perform pick play point
    predict prepare prevent print produce promise prove prune publish pull push put raise read
    rebuild recall receive recompute reduce refuse register reject remember remove rename render
    repair repeat replace replay report require rescale reset resolve restore return reverse
    rewrite run save say see select send serialise set settle shall should show shuffle simulate
    skip solve sort split spread start stop store strip submit summarise suppress take tell tidy
    track train transform translate trim try turn unify unpack update use uses validate verify
    visit wait walk want wants warn was watch were will would wrap write yield
""")


def split_words(name: str) -> list[str]:
    """The words of a name in lower case: ``_checkedRows_2`` -> checked, rows."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [word for word in spaced.lower().split("_") if word and not word.isdigit()]


def is_participle(word: str) -> bool:
    """Whether a word is a past form or a participle: ``opened``, ``drawing``, ``rebuilt``."""
    if word in NOT_PARTICIPLES or word in VERBS:
        return False
    if word.endswith("eed"):
        return word in PARTICIPLES_IN_EED
    if word.endswith("string"):
        return False
    return _has_ending(word, "ed") or _has_ending(word, "ing") or _is_irregular(word)


def is_bare_participle(name: str) -> bool:
    """Whether a function's name is a participle and nothing else that says what it does or is.

    Args:
        name: The function's name; leading underscores and numbers do not matter.

    Returns:
        True for ``_opened``, ``asked_for``, ``epsilon_asked``; False for ``open_cell``,
        ``sorted_rows``, ``is_sorted``, ``seed`` and names with double underscores.
    """
    if name.startswith("__") and name.endswith("__"):
        return False
    words = split_words(name)
    while words and words[0] in JOINING:
        words = words[1:]
    joint = next((i for i, word in enumerate(words) if word in JOINING), len(words))
    phrase = words[:joint]
    while phrase and phrase[-1] in LABELS:
        phrase.pop()
    return bool(phrase) and phrase[0] not in VERBS and is_participle(phrase[-1])


def _has_ending(word: str, ending: str) -> bool:
    """Whether a stem with a vowel stands before the ending: not in ``red``, ``thing``."""
    return word.endswith(ending) and re.search("[aeiouy]", word.removesuffix(ending)) is not None


def _is_irregular(word: str) -> bool:
    stems = (word.removeprefix(prefix) for prefix in PREFIXES if word.startswith(prefix))
    return word in IRREGULAR or any(len(stem) > 2 and stem in IRREGULAR for stem in stems)
