"""`partita acls`: who may do what, in the words of kafka-acls."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_interface
from typing import TYPE_CHECKING, Any, TypeVar

import click

from partita.cli.address import Address, address_options
from partita.cli.connecting import connected, json_option, yes_option
from partita.cli.terminal import complain, confirm, print_json, print_table, say
from partita.lazy import later
from partita.wording import count

if TYPE_CHECKING:
    from partita.admin.access import acls as access_acls
    from partita.security.rights import acl_text
    from partita.security.rights import acls as rights_acls
else:
    access_acls = later("partita.admin.access.acls")
    acl_text = later("partita.security.rights.acl_text")
    rights_acls = later("partita.security.rights.acls")

F = TypeVar("F", bound=Callable[..., Any])
_RESOURCES = ("topic", "group", "transactional_id")


@click.group()
def acls() -> None:
    """List, add and remove ACLs: who may do what."""


def resource_options(command: F) -> F:
    """Add the options that name resources."""
    for option in (
        click.option("--prefix", is_flag=True, help="The names are prefixes."),
        click.option("--cluster", is_flag=True, help="The cluster itself."),
        click.option("--transactional-id", multiple=True, metavar="ID", help="A transactional id, or *."),
        click.option("--group", multiple=True, metavar="NAME", help="A group, or *."),
        click.option("--topic", multiple=True, metavar="NAME", help="A topic, or *."),
    ):
        command = option(command)
    return command


def entry_options(command: F) -> F:
    """Add the options that say who may do what, and from where."""
    for option in (
        click.option("--host", multiple=True, metavar="ADDRESS", help="From this address or network only."),
        click.option(
            "--producer", is_flag=True, help="WRITE, DESCRIBE, CREATE on the topics; WRITE, DESCRIBE on the ids."
        ),
        click.option("--consumer", is_flag=True, help="READ, DESCRIBE on the topics; READ on the groups."),
        click.option("--operation", multiple=True, metavar="NAME", help="Such as read or describe-configs; else all."),
        click.option("--deny", multiple=True, metavar="PRINCIPAL", help="Who may not, such as User:alice."),
        click.option(
            "--allow", "--principal", multiple=True, metavar="PRINCIPAL", help="Who may, such as User:alice or User:*."
        ),
    ):
        command = option(command)
    return command


@acls.command("list")
@address_options
@resource_options
@click.option("--principal", metavar="PRINCIPAL", help="Only what names this principal, such as User:alice.")
@click.option("--match", is_flag=True, help="Also ACLs on * and on prefixes that apply to the names.")
@json_option
def list_(bootstrap: Address, principal: str | None, match: bool, as_json: bool, **resources: Any) -> None:
    """Show the ACLs of the cluster, or those about some resources."""
    pattern = (
        rights_acls.PatternType.MATCH
        if match
        else rights_acls.PatternType.PREFIXED
        if resources["prefix"]
        else rights_acls.PatternType.ANY
    )
    filters = [rights_acls.AclFilter(kind, name, pattern, principal) for kind, name in _named(resources)]
    with connected(bootstrap) as admin:
        wanted = filters or [rights_acls.AclFilter(pattern_type=pattern, principal=principal)]
        found = dict.fromkeys(acl for each in wanted for acl in admin.describe_acls(each))
    if as_json:
        print_json(list(found))
    elif not found:
        say("no ACLs")
    else:
        _print(list(found))


@acls.command()
@click.argument("lines", nargs=-1, metavar="[ACL]...")
@address_options
@entry_options
@resource_options
def add(bootstrap: Address, lines: tuple[str, ...], **given: Any) -> None:
    """Add ACLs: by options, or each ACL as one line such as "allow User:alice read,describe topic orders-*"."""
    wanted = _bindings(lines, given)
    for host in sorted({acl.host for acl in wanted} - {"*"}):
        if not _is_address(host):
            complain(f"host {host} is no address and no network: this rule will never match")
    with connected(bootstrap) as admin:
        admin.create_acls(*wanted)
    _print(wanted)


@acls.command()
@click.argument("lines", nargs=-1, metavar="[ACL]...")
@address_options
@entry_options
@resource_options
@yes_option
def remove(bootstrap: Address, lines: tuple[str, ...], yes: bool, **given: Any) -> None:
    """Remove ACLs, named as for add. Without a principal everything about the resources is removed."""
    with connected(bootstrap) as admin:
        wanted: list[rights_acls.AclBinding | rights_acls.AclFilter] = []
        if lines or given["allow"] or given["deny"]:
            wanted += _bindings(lines, given)
        else:
            wanted += _about(given)
        confirm("Remove these ACLs?", yes=yes)
        removed = admin.delete_acls(*wanted)
    if removed:
        _print(removed)
    say(f"removed {count(len(removed), 'ACL')}")


def _about(given: dict[str, Any]) -> list[rights_acls.AclFilter]:
    pattern = rights_acls.PatternType.PREFIXED if given["prefix"] else rights_acls.PatternType.LITERAL
    named = _named(given)
    if not named:
        raise click.UsageError("which ACLs? name a principal, a resource, or give ACLs as lines")
    return [rights_acls.AclFilter(kind, name, pattern) for kind, name in named]


def _named(given: dict[str, Any]) -> list[tuple[rights_acls.ResourceType, str]]:
    named = [(rights_acls.ResourceType[option.upper()], name) for option in _RESOURCES for name in given[option]]
    return [*named, (rights_acls.ResourceType.CLUSTER, rights_acls.CLUSTER_NAME)] if given["cluster"] else named


def _bindings(lines: tuple[str, ...], given: dict[str, Any]) -> list[rights_acls.AclBinding]:
    try:
        found = access_acls.bindings(lines)
        rights = _rights(given)
    except acl_text.AclTextError as error:
        raise click.UsageError(str(error)) from None
    who = [(rights_acls.Permission.ALLOW, principal) for principal in given["allow"]]
    who += [(rights_acls.Permission.DENY, principal) for principal in given["deny"]]
    if (rights and not who) or (who and not rights) or not (found or rights):
        raise click.UsageError(
            "say who (--allow or --deny) and which resource (--topic, --group, --transactional-id or --cluster), "
            'or give ACLs as lines such as "allow User:alice read topic orders"'
        )
    pattern = rights_acls.PatternType.PREFIXED if given["prefix"] else rights_acls.PatternType.LITERAL
    for kind, name, operation in rights:
        own = rights_acls.PatternType.LITERAL if kind.name == "CLUSTER" or name == "*" else pattern
        found += [
            rights_acls.AclBinding(kind, name, principal, operation, permission, own, host)
            for permission, principal in who
            for host in given["host"] or ("*",)
        ]
    return list(dict.fromkeys(found))


def _rights(given: dict[str, Any]) -> list[tuple[rights_acls.ResourceType, str, rights_acls.Operation]]:
    """(type, name, operation) of every right that options and roles name. Raises AclTextError."""
    roles: dict[rights_acls.ResourceType, list[rights_acls.Operation]] = {}
    if given["producer"]:
        roles[rights_acls.ResourceType.TOPIC] = [
            rights_acls.Operation.WRITE,
            rights_acls.Operation.DESCRIBE,
            rights_acls.Operation.CREATE,
        ]
        roles[rights_acls.ResourceType.TRANSACTIONAL_ID] = [rights_acls.Operation.WRITE, rights_acls.Operation.DESCRIBE]
    if given["consumer"]:
        roles[rights_acls.ResourceType.TOPIC] = [
            *roles.get(rights_acls.ResourceType.TOPIC, []),
            rights_acls.Operation.READ,
            rights_acls.Operation.DESCRIBE,
        ]
        roles[rights_acls.ResourceType.GROUP] = [rights_acls.Operation.READ]
    chosen = [acl_text.word(rights_acls.Operation, name) for name in given["operation"]]
    if roles and chosen:
        raise click.UsageError("--producer and --consumer name the operations; leave --operation out")
    return [
        (kind, name, operation)
        for kind, name in _named(given)
        for operation in (roles.get(kind, []) if roles else chosen or [rights_acls.Operation.ALL])
    ]


def _is_address(host: str) -> bool:
    try:
        ip_interface(host)
    except ValueError:
        return False
    return True


def _print(found: list[rights_acls.AclBinding]) -> None:
    columns = ["principal", "permission", "operation", "resource", "name", "pattern", "host"]
    print_table(
        columns,
        [
            (
                acl.principal,
                acl.permission.name,
                acl.operation.name,
                acl.resource_type.name,
                acl.resource_name,
                acl.pattern_type.name,
                acl.host,
            )
            for acl in found
        ],
    )
