"""What every store of artifacts does."""

from turnloom.testing.contracts.artifacts.indexing import IndexingContract
from turnloom.testing.contracts.artifacts.querying import (
    CountingContract,
    FindingContract,
    PagingContract,
)
from turnloom.testing.contracts.artifacts.storing import (
    FollowingContract,
    KeepingContract,
    TakingContract,
)
from turnloom.testing.contracts.artifacts.visibility import SeeingContract, TenantsContract

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
