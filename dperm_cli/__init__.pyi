# Written by `python -m dperm_cli.api.type_stub`.
# ruff: noqa: I001

from dperm_cli.api.forecasts import RiskForecast as RiskForecast
from dperm_cli.api.forecasts import plan as plan
from dperm_cli.api.foreign_claims import FitAudit as FitAudit
from dperm_cli.api.foreign_claims import audit_fit as audit_fit
from dperm_cli.api.problems import Problem as Problem
from dperm_cli.api.problems import load_data as load_data
from dperm_cli.api.problems import make_problem as make_problem
from dperm_cli.api.questions import AccountTable as AccountTable
from dperm_cli.api.questions import AuditReport as AuditReport
from dperm_cli.api.questions import Description as Description
from dperm_cli.api.questions import account as account
from dperm_cli.api.questions import audit as audit
from dperm_cli.api.questions import describe as describe
from dperm_cli.api.questions import plans as plans
from dperm_cli.api.studies import Study as Study
from dperm_cli.api.studies import StudyComparison as StudyComparison
from dperm_cli.api.studies import load as load
from dperm_cli.api.studies import run as run
from dperm_cli.audit.contracts.suite import CheckReport as CheckReport
from dperm_cli.audit.contracts.suite import check as check
from dperm_cli.bounds.base import Bound as Bound
from dperm_cli.bounds.base import Setting as Setting
from dperm_cli.bounds.base import check_mechanism as check_mechanism
from dperm_cli.bounds.base import lower_bound as lower_bound
from dperm_cli.bounds.base import upper_bound as upper_bound
from dperm_cli.core.errors import DpermError as DpermError
from dperm_cli.core.errors import InputError as InputError
from dperm_cli.core.errors import PrivacyError as PrivacyError
from dperm_cli.core.errors import StorageError as StorageError
from dperm_cli.core.errors import UnknownKey as UnknownKey
from dperm_cli.core.errors import Unsupported as Unsupported
from dperm_cli.core.fields import Allowed as Allowed
from dperm_cli.core.fields import Auto as Auto
from dperm_cli.core.fields import Check as Check
from dperm_cli.core.fields import Choices as Choices
from dperm_cli.core.fields import Count as Count
from dperm_cli.core.fields import FromRun as FromRun
from dperm_cli.core.fields import Help as Help
from dperm_cli.core.fields import Key as Key
from dperm_cli.core.fields import NonNegative as NonNegative
from dperm_cli.core.fields import Positive as Positive
from dperm_cli.core.fields import Probability as Probability
from dperm_cli.core.fields import Range as Range
from dperm_cli.core.fields import Required as Required
from dperm_cli.core.fields import Seed as Seed
from dperm_cli.core.fields import Unit as Unit
from dperm_cli.datasets.base import DataSet as DataSet
from dperm_cli.kernels.base import Kernel as Kernel
from dperm_cli.kernels.base import ShiftKernel as ShiftKernel
from dperm_cli.losses.absolute import Absolute as Absolute
from dperm_cli.losses.base import PerRecord as Loss
from dperm_cli.losses.hinge import Hinge as Hinge
from dperm_cli.losses.huberized_hinge import HuberizedHinge as HuberizedHinge
from dperm_cli.losses.huberized_positive_part import HuberizedPositivePart as HuberizedPositivePart
from dperm_cli.losses.l1_median import L1Median as L1Median
from dperm_cli.losses.l2_median import L2Median as L2Median
from dperm_cli.losses.linear import Linear as Linear
from dperm_cli.losses.logistic import Logistic as Logistic
from dperm_cli.losses.multinomial import Multinomial as Multinomial
from dperm_cli.losses.positive_part import PositivePart as PositivePart
from dperm_cli.losses.shared.margin_loss import Glm as MarginLoss
from dperm_cli.losses.squared import Squared as Squared
from dperm_cli.mechanisms.adversary import Adversary as Adversary
from dperm_cli.mechanisms.adversary import linear_pair as linear_pair
from dperm_cli.mechanisms.base import Design as Design
from dperm_cli.mechanisms.base import Mechanism as Mechanism
from dperm_cli.mechanisms.base import Plan as Plan
from dperm_cli.mechanisms.base import Release as Release
from dperm_cli.privacy.budget import Budget as Budget
from dperm_cli.privacy.budget import Guarantee as Guarantee
from dperm_cli.privacy.events import Approx as Approx
from dperm_cli.privacy.events import Channel as Channel
from dperm_cli.privacy.events import DisjointBatches as DisjointBatches
from dperm_cli.privacy.events import Event as Event
from dperm_cli.privacy.events import Exponential as Exponential
from dperm_cli.privacy.events import GammaNorm as GammaNorm
from dperm_cli.privacy.events import Gaussian as Gaussian
from dperm_cli.privacy.events import Laplace as Laplace
from dperm_cli.privacy.events import NoiseEvent as NoiseEvent
from dperm_cli.privacy.events import PrivacyLoss as PrivacyLoss
from dperm_cli.privacy.events import Pure as Pure
from dperm_cli.privacy.events import SampledGaussian as SampledGaussian
from dperm_cli.privacy.events import SparseAnswers as SparseAnswers
from dperm_cli.privacy.events.base import OneSum as OneSum
from dperm_cli.privacy.gate import Gate as Gate
from dperm_cli.problem.cone_program import add_ball as add_ball
from dperm_cli.problem.cone_program import add_nonnegative as add_nonnegative
from dperm_cli.problem.data import Bounds as Bounds
from dperm_cli.problem.data import Data as Data
from dperm_cli.problem.problem import ProblemSpec as ProblemSpec
from dperm_cli.runner.models.budget_ledger import read_budget as read_budget
from dperm_cli.runner.models.budget_request import create_budget as create_budget
from dperm_cli.samplers.base import Certificate as Certificate
from dperm_cli.samplers.base import Sampler as Sampler
from dperm_cli.samplers.base import Target as Target
from dperm_cli.sets.base import AnyDimension as AnyDimension
from dperm_cli.sets.base import ConvexSet as ConvexSet
from dperm_cli.sets.base import Radius as Radius
from dperm_cli.sets.box import Box as Box
from dperm_cli.sets.ellipsoid import Ellipsoid as Ellipsoid
from dperm_cli.sets.image import Image as Image
from dperm_cli.sets.intersection import Intersection as Intersection
from dperm_cli.sets.l1_ball import L1Ball as L1Ball
from dperm_cli.sets.l2_ball import L2Ball as L2Ball
from dperm_cli.sets.lp_ball import LpBall as LpBall
from dperm_cli.sets.polytope import Polytope as Polytope
from dperm_cli.sets.simplex import Simplex as Simplex
from dperm_cli.solvers.optimum import Optimum as Optimum
from dperm_cli.views.central import CentralView as CentralView
from dperm_cli.views.local import LocalView as LocalView
from dperm_cli import losses as losses
from dperm_cli import sets as sets
from dperm_cli import datasets as datasets
from dperm_cli import kernels as kernels
from dperm_cli import samplers as samplers
from dperm_cli import mechanisms as mechanisms
from dperm_cli.privacy import events as events
from dperm_cli.privacy import channels as channels
from dperm_cli.privacy.accounting import accountant as accountant

__version__: str
__all__ = [
    "Absolute",
    "AccountTable",
    "Adversary",
    "Allowed",
    "AnyDimension",
    "Approx",
    "AuditReport",
    "Auto",
    "Bound",
    "Bounds",
    "Box",
    "Budget",
    "CentralView",
    "Certificate",
    "Channel",
    "Check",
    "CheckReport",
    "Choices",
    "ConvexSet",
    "Count",
    "Data",
    "DataSet",
    "Description",
    "Design",
    "DisjointBatches",
    "DpermError",
    "Ellipsoid",
    "Event",
    "Exponential",
    "FitAudit",
    "FromRun",
    "GammaNorm",
    "Gate",
    "Gaussian",
    "Guarantee",
    "Help",
    "Hinge",
    "HuberizedHinge",
    "HuberizedPositivePart",
    "Image",
    "InputError",
    "Intersection",
    "Kernel",
    "Key",
    "L1Ball",
    "L1Median",
    "L2Ball",
    "L2Median",
    "Laplace",
    "Linear",
    "LocalView",
    "Logistic",
    "Loss",
    "LpBall",
    "MarginLoss",
    "Mechanism",
    "Multinomial",
    "NoiseEvent",
    "NonNegative",
    "OneSum",
    "Optimum",
    "Plan",
    "Polytope",
    "Positive",
    "PositivePart",
    "PrivacyError",
    "PrivacyLoss",
    "Probability",
    "Problem",
    "ProblemSpec",
    "Pure",
    "Radius",
    "Range",
    "Release",
    "Required",
    "RiskForecast",
    "SampledGaussian",
    "Sampler",
    "Seed",
    "Setting",
    "ShiftKernel",
    "Simplex",
    "SparseAnswers",
    "Squared",
    "StorageError",
    "Study",
    "StudyComparison",
    "Target",
    "Unit",
    "UnknownKey",
    "Unsupported",
    "account",
    "accountant",
    "add_ball",
    "add_nonnegative",
    "audit",
    "audit_fit",
    "channels",
    "check",
    "check_mechanism",
    "create_budget",
    "datasets",
    "describe",
    "events",
    "kernels",
    "linear_pair",
    "load",
    "load_data",
    "losses",
    "lower_bound",
    "make_problem",
    "mechanisms",
    "plan",
    "plans",
    "read_budget",
    "run",
    "samplers",
    "sets",
    "upper_bound",
]
