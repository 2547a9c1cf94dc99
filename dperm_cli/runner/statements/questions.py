"""What a statement asks the person who signs it: one entry for each line of the answers file."""

from __future__ import annotations

from dperm_cli.core.dataclass import dataclass

TEXT, NAMES, DATE, SLUG, COUNT = "text", "names", "date", "slug", "count"
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
SOURCE_TYPES = ("Static", "Dynamic")


@dataclass(frozen=True)
class Question:
    """One line of the answers file.

    Attributes:
        name: its key.
        words: what to write there, for the draft.
        kind: ``text``, ``names`` (a list of texts), ``date``, ``slug`` or ``count``.
        required: whether the registry takes no entry without it.
        choices: the texts that it may be; empty for any text.
    """

    name: str
    words: str
    kind: str = TEXT
    required: bool = False
    choices: tuple[str, ...] = ()


QUESTIONS = (
    Question("url_slug", "short name for an address: a-z, 0-9 and dashes", SLUG, True),
    Question("name", "name of what is published", TEXT, True),
    Question("data_curators", "list: who publishes it", NAMES, True),
    Question("description", "what it is, in a few sentences", TEXT, True),
    Question("intended_use", "what it is meant to be used for", TEXT, True),
    Question("region", "region of the data, or whose law applies", TEXT, True),
    Question("publication_date", "day of publication, YYYY-MM-DD", DATE, True),
    Question("registry_authors", "list: who fills in this file", NAMES, True),
    Question("signed_by", "name and office of the person who signs"),
    Question("sector", "industry or domain", choices=SECTORS),
    Question("people", "whom the records are about, from where and when"),
    Question("records_per_person", "largest number of records that one person has", COUNT),
    Question("reason_for_epsilon", "why this epsilon and this delta"),
    Question("other_releases", "what else was or will be released from these data, at what cost"),
    Question("actors", "who holds, sees and uses records and model; who is trusted with what"),
    Question("access_control", "who may read the records, the model and the seeds; how it is held"),
    Question("side_channels", "who can watch time, memory or logs of the machine"),
    Question("collection", "how and on what ground the data were collected"),
    Question("bias", "who is missing or badly described in the data, and what follows"),
    Question("outside_work", "what was done to the data, and looked at, before or outside dperm"),
    Question("data_source_type", "do new data come in later", choices=SOURCE_TYPES),
    Question("data_source_details", "if so, how"),
    Question("sources", "addresses of reports, of the code and of the model"),
    Question("notes", "anything else for the registry"),
)
REQUIRED = tuple(question.name for question in QUESTIONS if question.required)
