"""What every store of artifacts does."""

from turnloom.testing.contracts.artifacts.counting import CountingContract
from turnloom.testing.contracts.artifacts.finding import FindingContract
from turnloom.testing.contracts.artifacts.following import FollowingContract
from turnloom.testing.contracts.artifacts.indexing import IndexingContract
from turnloom.testing.contracts.artifacts.keeping import KeepingContract
from turnloom.testing.contracts.artifacts.paging import PagingContract
from turnloom.testing.contracts.artifacts.seeing import SeeingContract
from turnloom.testing.contracts.artifacts.taking import TakingContract
from turnloom.testing.contracts.artifacts.tenants import TenantsContract

__all__ = ["ArtifactStoreContract", "FollowingContract"]


class ArtifactStoreContract(
    KeepingContract,
    PagingContract,
    FindingContract,
    IndexingContract,
    SeeingContract,
    TakingContract,
    CountingContract,
    TenantsContract,
):
    """The suite for `ArtifactStore`."""
